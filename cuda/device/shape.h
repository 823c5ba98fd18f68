// Sizes that follow from a model's configuration.
#pragma once

#include <stdint.h>

#include "../../exec/native/native.h"
#include "../kernels/attention.h"
#include "../kernels/gemm.h"

namespace cuda {

// Shape is a configuration that this device can compute, and what follows from it.
struct Shape {
  tr_model_config config;

  int64_t layers() const { return config.layers; }
  int64_t hidden() const { return config.hidden; }
  int64_t heads() const { return config.heads; }
  int64_t kvHeads() const { return config.kv_heads; }
  int64_t headDim() const { return config.head_dim; }
  int64_t intermediate() const { return config.intermediate; }
  int64_t vocab() const { return config.vocab; }
  int64_t group() const { return heads() / kvHeads(); }

  int64_t headStride() const { return headStrideOf(headDim()); }
  int64_t headsPacked() const { return heads() + 2 * kvHeads(); }  // queries, keys, values
  int64_t attended() const { return heads() * headStride(); }      // numbers that go into matrix o
  int64_t kvBytesPerToken() const {
    return 2 * layers() * kvHeads() * headStride() * int64_t(sizeof(uint16_t));
  }

  bool r2r() const { return config.router == TR_ROUTER_R2R; }
  bool router() const { return config.router != TR_ROUTER_NONE; }
};

// Fails with TR_INVALID for a configuration that contradicts itself and with TR_UNSUPPORTED for one that this
// device can not compute.
int32_t shapeOf(const tr_model_config& config, Shape* shape, tr_error* error);

// Fails with TR_INVALID for limits that a model of this shape can not have.
int32_t checkShapeLimits(const Shape& shape, const tr_limits& limits, tr_error* error);

}  // namespace cuda
