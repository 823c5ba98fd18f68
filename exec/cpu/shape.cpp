#include "../native/config_checks.h"
#include "shape.h"

#include <errno.h>
#include <math.h>

#include <memory>


namespace cpu {

using native::fail;
using native::inRange;

namespace {

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
  int32_t status = native::checkConfig(c, error);
  if (status != TR_OK) return status;
  if (c.heads / c.kv_heads > groupMax) {
    return fail(error, TR_UNSUPPORTED, "%d heads of %d kv_heads, want at most %d of one", c.heads, c.kv_heads,
                int(groupMax));
  }
  if (c.head_dim % 2 != 0 || c.head_dim > headDimMax) {
    return fail(error, TR_UNSUPPORTED, "head_dim = %d, want an even number up to %d", c.head_dim,
                int(headDimMax));
  }
  shape->config = c;
  status = checkFormat(*shape, error);
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

int32_t checkLimits(const Shape& shape, const tr_limits& limits, tr_error* error) {
  return native::checkLimits(shape.config, limits, shape.config.vocab, error);
}

}  // namespace cpu
