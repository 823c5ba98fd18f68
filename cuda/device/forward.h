// The launches of one forward pass.
#pragma once

#include "shape.h"
#include "../kernels/rows.h"
#include "lt.h"
#include "weights.h"
#include "work.h"

namespace cuda {

// Everything that a pass is made of. rows and heads are those computed, with padding.
struct Forward {
  const Shape& shape;
  const tr_limits& limits;
  const Sizes& sizes;
  const Weights& weights;
  const Work& work;
  Lt& lt;
  int multiprocessors;
  int64_t rows, heads;
  cudaStream_t stream;

  // Adds all launches to the stream: after the inbox is there, until the outbox is.
  cudaError_t operator()() const;

 private:
  cudaError_t layer(int64_t l) const;
  cudaError_t toKeysAndValues(int64_t l) const;
  cudaError_t attendLayer(int64_t l) const;
  cudaError_t mlp(int64_t l) const;
  cudaError_t head() const;
  cudaError_t route() const;
  cudaError_t r2r() const;
  cudaError_t multiply(const uint16_t* x, int64_t xStride, const Matrix& matrix, int64_t count, float* y,
                       int64_t yStride) const;

  bool last(int64_t l) const { return l + 1 == shape.layers(); }
  KVPages pages(int64_t l) const;
};

}  // namespace cuda
