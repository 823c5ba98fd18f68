// The tensors of native.h by number.
#pragma once

#include "failure.h"

namespace native {

// Tensors are numbered from 1 to tensorMax.
constexpr int32_t tensorMax = TR_ROUTER_OUT_BIAS;

constexpr const char* tensorNames[] = {
    "?", "TR_EMBEDDING", "TR_HEAD", "TR_FINAL_NORM", "TR_INPUT_NORM", "TR_Q", "TR_K", "TR_V", "TR_Q_BIAS",
    "TR_K_BIAS", "TR_V_BIAS", "TR_Q_NORM", "TR_K_NORM", "TR_O", "TR_O_BIAS", "TR_POST_NORM", "TR_GATE",
    "TR_UP", "TR_DOWN", "TR_GATE_BIAS", "TR_UP_BIAS", "TR_DOWN_BIAS", "TR_ROPE_FREQUENCIES", "TR_WINDOWS",
    "TR_ROUTER_TOP", "TR_ROUTER_TOP_BIAS", "TR_ROUTER_COMBINED", "TR_ROUTER_COMBINED_BIAS", "TR_ROUTER_IN",
    "TR_ROUTER_IN_BIAS", "TR_ROUTER_NORM", "TR_ROUTER_NORM_BIAS", "TR_ROUTER_FIRST", "TR_ROUTER_FIRST_BIAS",
    "TR_ROUTER_SECOND", "TR_ROUTER_SECOND_BIAS", "TR_ROUTER_OUT_NORM", "TR_ROUTER_OUT_NORM_BIAS",
    "TR_ROUTER_OUT", "TR_ROUTER_OUT_BIAS"};

static_assert(sizeof tensorNames / sizeof *tensorNames == tensorMax + 1, "a name for every tensor");

// The name of a tensor in native.h, such as "TR_Q"; "?" if there is none of this number.
inline const char* tensorName(int32_t tensor) {
  return tensorNames[tensor >= 1 && tensor <= tensorMax ? tensor : 0];
}

// Fails with TR_INVALID unless what is put has the type and sizes of its place: rows, columns, and type, TR_F32
// for a weight, which may be put as bf16 and f16 too.
template <class Place>
int32_t checkFits(const Place& place, const char* name, int32_t type, int64_t rows, int64_t columns,
                  tr_error* error) {
  const bool weight = place.type == TR_F32;
  if (weight ? type != TR_BF16 && type != TR_F16 && type != TR_F32 : type != place.type) {
    return fail(error, TR_INVALID, "%s: type %d, want %s", name, type,
                weight ? "bf16, f16 or f32" : place.type == TR_F64 ? "f64" : "i32");
  }
  if (rows != place.rows || columns != place.columns) {
    return fail(error, TR_INVALID, "%s: %" PRId64 " x %" PRId64 ", want %" PRId64 " x %" PRId64, name, rows,
                columns, place.rows, place.columns);
  }
  return TR_OK;
}

// Whether a tensor is put for each layer.
inline bool inLayers(int32_t tensor) { return tensor >= TR_INPUT_NORM && tensor <= TR_DOWN_BIAS; }

}  // namespace native
