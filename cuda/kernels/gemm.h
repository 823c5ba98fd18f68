// Products of few rows with matrices of bf16.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

namespace cuda {

// Rows that the kernel takes at a time; what is behind the rows given, up to a multiple of it, is read and
// must be memory, but may hold anything.
constexpr int64_t skinnyRows = 16;

// Inputs of a matrix are filled up with zeros to a multiple of depthStep, outputs to one of columnStep.
constexpr int64_t depthStep = 64, columnStep = 16;

inline int64_t paddedDepth(int64_t depth) { return (depth + depthStep - 1) / depthStep * depthStep; }
inline int64_t paddedColumns(int64_t columns) { return (columns + columnStep - 1) / columnStep * columnStep; }

// Matrix is [columns][depth], an output's inputs together, the layout of checkpoints: with strides padded.
struct Matrix {
  uint16_t* weights;  // [paddedColumns][paddedDepth]
  int64_t columns, depth;

  int64_t stride() const { return paddedDepth(depth); }
  int64_t elements() const { return paddedColumns(columns) * stride(); }
};

// y[row][yStride] = x[row][xStride] * matrix, fp32 sums of bf16 products; strides at least padded. Bits of a
// row depend on nothing but the row and the matrix.
struct Product {
  const uint16_t* x;
  int64_t xStride;
  Matrix matrix;
  float* y;
  int64_t yStride;
};

// For any number of rows: weights are read once for every 16. Near the bandwidth of memory where these are
// few.
cudaError_t multiplyFew(const Product& p, int64_t rows, cudaStream_t stream);

// Bound on |y - exact| over the sum of the terms' magnitudes.
constexpr double productTolerance = 4e-6;

// y[column] and the sums of magnitudes, of one row, in double, on the host.
void productReference(const uint16_t* x, const Matrix& matrix, double* y, double* magnitude);

}  // namespace cuda
