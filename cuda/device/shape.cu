#include "shape.h"

#include "../../exec/native/config_checks.h"
#include "../kernels/logits.h"

namespace cuda {

using native::fail;
using native::inRange;

namespace {

int32_t checkRouter(const tr_model_config& c, tr_error* error) {
  if (!inRange(error, "router", c.router, TR_ROUTER_NONE, TR_ROUTER_COLLM)) return TR_INVALID;
  if (c.router == TR_ROUTER_R2R) {
    const bool sound = inRange(error, "router_top", c.router_top, 1, c.vocab) &&
                       inRange(error, "router_width", c.router_width, 1, native::widthMax) &&
                       inRange(error, "router_blocks", c.router_blocks, 1, native::layersMax) &&
                       inRange(error, "router_expanded", c.router_expanded, 1, native::widthMax);
    if (!sound) return TR_INVALID;
    if (c.router_top <= topMax) return TR_OK;
    return fail(error, TR_UNSUPPORTED, "router_top = %d, want at most %d", c.router_top, int(topMax));
  }
  const int64_t widthMin = c.router == TR_ROUTER_CITER, width = widthMin ? native::widthMax : 0;
  const bool sound = inRange(error, "router_width", c.router_width, widthMin, width) &&
                     inRange(error, "router_top", c.router_top, 0, 0) &&
                     inRange(error, "router_blocks", c.router_blocks, 0, 0) &&
                     inRange(error, "router_expanded", c.router_expanded, 0, 0);
  return sound ? TR_OK : TR_INVALID;
}

}  // namespace

int32_t shapeOf(const tr_model_config& c, Shape* shape, tr_error* error) {
  const int32_t status = native::checkConfig(c, error);
  if (status != TR_OK) return status;
  if (c.weights != TR_WEIGHTS_BF16) {
    return fail(error, c.weights == TR_WEIGHTS_INT8 ? TR_UNSUPPORTED : TR_INVALID,
                "weights = %d, want %d: this device keeps bf16", c.weights, TR_WEIGHTS_BF16);
  }
  if (c.group_inputs != 0) {
    return fail(error, TR_INVALID, "group_inputs = %d, want 0 for bf16", c.group_inputs);
  }
  if (c.head_dim % 2 != 0 || c.head_dim > headDimMax) {
    return fail(error, TR_UNSUPPORTED, "head_dim = %d, want an even number up to %d", c.head_dim,
                int(headDimMax));
  }
  shape->config = c;
  return checkRouter(c, error);
}

int32_t checkShapeLimits(const Shape& shape, const tr_limits& limits, tr_error* error) {
  return native::checkLimits(shape.config, limits, topMax, error);
}

}  // namespace cuda
