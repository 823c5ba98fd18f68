// Weights of models that are only timed.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

namespace cuda {

// How the numbers of a tensor come about: model_random of native.h.
struct Drawn {
  uint64_t state;
  double mean, scale;
};

// Where they go: number k of row i of the tensor to row first + i / run * stride + i % run and column
// k / columnRun * columnStride + k % columnRun of the matrix; number i of a tensor for a vector likewise by
// row. One of the two is null.
struct Filled {
  int64_t rows, columns;  // of the tensor; 1 row for a vector
  uint16_t* matrix;
  int64_t matrixStride;
  float* vector;
  int64_t first, run, stride;
  int64_t columnRun, columnStride;
};

cudaError_t fillRandom(const Drawn& drawn, const Filled& filled, cudaStream_t stream);

// Number i, on the host.
uint16_t drawnReference(const Drawn& drawn, int64_t i);

}  // namespace cuda
