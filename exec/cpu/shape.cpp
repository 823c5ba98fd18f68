#include "shape.h"

#include <errno.h>
#include <math.h>

#include <memory>

#include "failure.h"

namespace cpu {

namespace {

constexpr int64_t widthMax = 1 << 20, layersMax = 1 << 12, vocabMax = 1 << 24, positionsMax = 1 << 30;
constexpr int64_t pageTokensMax = 1 << 16;

bool flagsSound(const tr_model_config& c, tr_error* error) {
  return inRange(error, "tied", c.tied, 0, 1) && inRange(error, "qkv_bias", c.qkv_bias, 0, 1) &&
         inRange(error, "output_bias", c.output_bias, 0, 1) && inRange(error, "mlp_bias", c.mlp_bias, 0, 1) &&
         inRange(error, "qk_norm", c.qk_norm, 0, 1);
}

bool sizesSound(const tr_model_config& c, tr_error* error) {
  return inRange(error, "layers", c.layers, 1, layersMax) &&
         inRange(error, "hidden", c.hidden, 1, widthMax) && inRange(error, "heads", c.heads, 1, widthMax) &&
         inRange(error, "kv_heads", c.kv_heads, 1, c.heads) &&
         inRange(error, "head_dim", c.head_dim, 1, widthMax) &&
         inRange(error, "heads * head_dim", int64_t(c.heads) * c.head_dim, 1, widthMax) &&
         inRange(error, "intermediate", c.intermediate, 1, widthMax) &&
         inRange(error, "vocab", c.vocab, 1, vocabMax) &&
         inRange(error, "samplable", c.samplable, 1, c.vocab) &&
         inRange(error, "positions", c.positions, 1, positionsMax);
}

int32_t checkFormat(const Shape& s, tr_error* error) {
  const Format f = s.format();
  if (f.weights != TR_WEIGHTS_BF16 && f.weights != TR_WEIGHTS_INT8) {
    return fail(error, TR_INVALID, "weights = %d, want %d (bf16) or %d (int8)", f.weights, TR_WEIGHTS_BF16,
                TR_WEIGHTS_INT8);
  }
  if (!f.int8() && f.groupInputs != 0) {
    return fail(error, TR_INVALID, "group_inputs = %d, want 0 for bf16", int(f.groupInputs));
  }
  if (!f.int8()) return TR_OK;
  for (int64_t depth : {s.hidden(), s.attended(), s.intermediate()}) {
    if (int8GroupFits(depth, f.groupInputs)) continue;
    return fail(error, TR_INVALID, "group_inputs = %d, want 0 or a multiple of %d for %d inputs",
                int(f.groupInputs), int8TileDepth, int(depth));
  }
  return TR_OK;
}

int32_t checkRouter(const Shape& s, tr_error* error) {
  const tr_model_config& c = s.config;
  if (!s.router()) return TR_OK;
  if (!inRange(error, "router", c.router, TR_ROUTER_NONE, TR_ROUTER_COLLM)) return TR_INVALID;
  if (c.router == TR_ROUTER_R2R && !inRange(error, "router_top", c.router_top, 1, c.vocab)) return TR_INVALID;
  std::unique_ptr<Router> router;
  const int32_t failed = Router::make(routerShapeOf(s), &router);
  if (failed == ENOMEM) return fail(error, TR_NO_MEMORY, "router: no memory for bookkeeping");
  if (!failed) return TR_OK;
  return fail(error, TR_INVALID,
              "router %d: width = %d, blocks = %d, expanded = %d, want sizes of such a router", c.router,
              c.router_width, c.router_blocks, c.router_expanded);
}

}  // namespace

int32_t shapeOf(const tr_model_config& c, Shape* shape, tr_error* error) {
  if (c.size != int32_t(sizeof c)) {
    return fail(error, TR_INVALID, "model_config has %d bytes, want %zu", c.size, sizeof c);
  }
  if (!sizesSound(c, error) || !flagsSound(c, error)) return TR_INVALID;
  if (c.heads % c.kv_heads != 0) {
    return fail(error, TR_INVALID, "heads = %d, want a multiple of kv_heads = %d", c.heads, c.kv_heads);
  }
  if (c.heads / c.kv_heads > groupMax) {
    return fail(error, TR_UNSUPPORTED, "%d heads of %d kv_heads, want at most %d of one", c.heads, c.kv_heads,
                int(groupMax));
  }
  if (c.head_dim % 2 != 0 || c.head_dim > headDimMax) {
    return fail(error, TR_UNSUPPORTED, "head_dim = %d, want an even number up to %d", c.head_dim,
                int(headDimMax));
  }
  if (!(c.norm_epsilon >= 0) || !(c.norm_epsilon < INFINITY)) {
    return fail(error, TR_INVALID, "norm_epsilon = %g, want 0 or more", double(c.norm_epsilon));
  }
  if (!(c.rope_factor > 0) || !(c.rope_factor < INFINITY)) {
    return fail(error, TR_INVALID, "rope_factor = %g, want above 0", double(c.rope_factor));
  }
  shape->config = c;
  int32_t status = checkFormat(*shape, error);
  return status == TR_OK ? checkRouter(*shape, error) : status;
}

RouterShape routerShapeOf(const Shape& shape) {
  const tr_model_config& c = shape.config;
  switch (c.router) {
    case TR_ROUTER_R2R:
      return {RouterKind::r2r, c.hidden, c.router_top, c.router_width, c.router_blocks, c.router_expanded};
    case TR_ROUTER_CITER: return {RouterKind::citer, c.hidden, 0, c.router_width, 0, 0};
    default: return {RouterKind::collm, c.hidden, 0, 0, 0, 0};
  }
}

int32_t checkLimits(const Shape& shape, const tr_limits& l, tr_error* error) {
  if (l.size != int32_t(sizeof l)) {
    return fail(error, TR_INVALID, "limits has %d bytes, want %zu", l.size, sizeof l);
  }
  if (!inRange(error, "page_tokens", l.page_tokens, blockTokens, pageTokensMax)) return TR_INVALID;
  if (l.page_tokens % blockTokens != 0) {
    return fail(error, TR_INVALID, "page_tokens = %d, want a multiple of %d", l.page_tokens, blockTokens);
  }
  bool sound = inRange(error, "slots", l.slots, 1, INT32_MAX) &&
               inRange(error, "pages", l.pages, 1, INT32_MAX) &&
               inRange(error, "context_max", l.context_max, 1, shape.config.positions) &&
               inRange(error, "rows_max", l.rows_max, 1, INT32_MAX) &&
               inRange(error, "requests_max", l.requests_max, 1, INT32_MAX) &&
               inRange(error, "top_max", l.top_max, 0, shape.config.vocab) &&
               inRange(error, "biases_max", l.biases_max, 0, INT32_MAX);
  return sound ? TR_OK : TR_INVALID;
}

}  // namespace cpu
