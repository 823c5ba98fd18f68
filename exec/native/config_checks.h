// What every device checks of a configuration and of limits, whatever it can compute.
#pragma once

#include <math.h>

#include "failure.h"
#include "native.h"

namespace native {

constexpr int64_t widthMax = 1 << 20, layersMax = 1 << 12, vocabMax = 1 << 24, positionsMax = 1 << 30;
constexpr int64_t pageTokensMax = 1 << 16, pageTokensStep = 16;

inline bool flagsSound(const tr_model_config& c, tr_error* error) {
  return inRange(error, "tied", c.tied, 0, 1) && inRange(error, "qkv_bias", c.qkv_bias, 0, 1) &&
         inRange(error, "output_bias", c.output_bias, 0, 1) && inRange(error, "mlp_bias", c.mlp_bias, 0, 1) &&
         inRange(error, "qk_norm", c.qk_norm, 0, 1);
}

inline bool sizesSound(const tr_model_config& c, tr_error* error) {
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

// Fails with TR_INVALID for a configuration that contradicts itself; formats and routers apart.
inline int32_t checkConfig(const tr_model_config& c, tr_error* error) {
  if (c.size != int32_t(sizeof c)) {
    return fail(error, TR_INVALID, "model_config has %d bytes, want %zu", c.size, sizeof c);
  }
  if (!sizesSound(c, error) || !flagsSound(c, error)) return TR_INVALID;
  if (c.heads % c.kv_heads != 0) {
    return fail(error, TR_INVALID, "heads = %d, want a multiple of kv_heads = %d", c.heads, c.kv_heads);
  }
  if (!(c.norm_epsilon >= 0) || !(c.norm_epsilon < INFINITY)) {
    return fail(error, TR_INVALID, "norm_epsilon = %g, want 0 or more", double(c.norm_epsilon));
  }
  if (!(c.rope_factor > 0) || !(c.rope_factor < INFINITY)) {
    return fail(error, TR_INVALID, "rope_factor = %g, want above 0", double(c.rope_factor));
  }
  return TR_OK;
}

// Fails with TR_INVALID for limits that a model can not have; topMax: entries of a top list at most.
inline int32_t checkLimits(const tr_model_config& c, const tr_limits& l, int64_t topMax, tr_error* error) {
  if (l.size != int32_t(sizeof l)) {
    return fail(error, TR_INVALID, "limits has %d bytes, want %zu", l.size, sizeof l);
  }
  if (!inRange(error, "page_tokens", l.page_tokens, pageTokensStep, pageTokensMax)) return TR_INVALID;
  if (l.page_tokens % pageTokensStep != 0) {
    return fail(error, TR_INVALID, "page_tokens = %d, want a multiple of %d", l.page_tokens,
                int(pageTokensStep));
  }
  const bool sound = inRange(error, "slots", l.slots, 1, INT32_MAX) &&
                     inRange(error, "pages", l.pages, 1, INT32_MAX) &&
                     inRange(error, "context_max", l.context_max, 1, c.positions) &&
                     inRange(error, "rows_max", l.rows_max, 1, INT32_MAX) &&
                     inRange(error, "requests_max", l.requests_max, 1, INT32_MAX) &&
                     inRange(error, "top_max", l.top_max, 0, c.vocab < topMax ? c.vocab : topMax) &&
                     inRange(error, "biases_max", l.biases_max, 0, INT32_MAX);
  return sound ? TR_OK : TR_INVALID;
}

}  // namespace native
