// Sizes that follow from a model's configuration.
#pragma once

#include <stdint.h>

#include "../native/native.h"
#include "attention.h"
#include "matrix.h"
#include "router.h"

namespace cpu {

// Shape is a configuration that this device can compute, and what follows from it. A head takes a multiple of
// 16 numbers in queries, keys and values; what fills it up is zero.
struct Shape {
  tr_model_config config;

  int64_t layers() const { return config.layers; }
  int64_t hidden() const { return config.hidden; }
  int64_t heads() const { return config.heads; }
  int64_t kvHeads() const { return config.kv_heads; }
  int64_t headDim() const { return config.head_dim; }
  int64_t intermediate() const { return config.intermediate; }
  int64_t vocab() const { return config.vocab; }

  bool router() const { return config.router != TR_ROUTER_NONE; }
  Format format() const { return {config.weights, config.group_inputs}; }

  int64_t headStride() const { return (headDim() + blockTokens - 1) / blockTokens * blockTokens; }
  int64_t headsPacked() const { return heads() + 2 * kvHeads(); }   // queries, keys, values
  int64_t attended() const { return heads() * headDim(); }          // numbers that go into matrix o
  int64_t kvBytesPerToken() const {
    return 2 * layers() * kvHeads() * headStride() * int64_t(sizeof(uint16_t));
  }
};

// The router of a configuration that has one.
RouterShape routerShapeOf(const Shape& shape);

// Fails with TR_INVALID for a configuration that contradicts itself and with TR_UNSUPPORTED for one that this
// device can not compute.
int32_t shapeOf(const tr_model_config& config, Shape* shape, tr_error* error);

// Fails with TR_INVALID for limits that a model of this shape can not have.
int32_t checkLimits(const Shape& shape, const tr_limits& limits, tr_error* error);

}  // namespace cpu
