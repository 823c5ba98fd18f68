// Matrix products of bf16 activations and packed bf16 weights.
#pragma once

#include <stdint.h>

#include "paths.h"
#include "packed.h"
#include "workers.h"

namespace cpu {

// y[m][n] = sum over k of x[m][k] * w(n, k), fp32.
//
// Every kernel adds the terms of one y[m][n] in an order that depends on k alone. Therefore, on one path, a
// row's result has the same bits alone and in any batch, for any number of threads. Paths differ in their
// last bits: they order or round the sum of a pair of inputs in their own way, and the bf16 instructions
// take subnormals as zero. Bound against exact sums: gemmTolerance * sum over k of |x[m][k] * w(n, k)|.
//
// A NaN or infinity in row m of x reaches row m of y only; one in the weights of column n reaches column n
// only.
struct Gemm {
  int64_t rows;  // 1 or more
  const uint16_t* x;
  int64_t xStride;  // elements a row, at least weights.paddedDepth(); zero from depth on
  Packed weights;
  float* y;
  int64_t yStride;  // elements a row, at least weights.paddedColumns(), which are all written
};

constexpr double gemmTolerance = 1e-5;

// Computes the columns of blocks begin to end - 1. It needs no state of the calling thread and leaves none.
using GemmBlocks = void (*)(const Gemm& g, int64_t begin, int64_t end);

// The kernel of an available path.
GemmBlocks gemmBlocks(Path path);

// The whole product, on all workers; to be called outside a run. False if one is going on.
bool gemm(Workers& workers, Path path, const Gemm& g);

// The same product in double, rows and columns without padding, y[rows][columns]; magnitude has the sums of
// the terms' magnitudes.
void gemmReference(const Gemm& g, double* y, double* magnitude);

void gemmBlocksPlain(const Gemm& g, int64_t begin, int64_t end);
#if defined(__x86_64__)
void gemmBlocksAvx2(const Gemm& g, int64_t begin, int64_t end);
void gemmBlocksAvx512(const Gemm& g, int64_t begin, int64_t end);
void gemmBlocksAvx512Bf16(const Gemm& g, int64_t begin, int64_t end);
void gemmBlocksAmx(const Gemm& g, int64_t begin, int64_t end);
#endif

// How far ahead of their use weights are fetched into the second-level cache. 2 KiB measured best; a hint
// that bypasses caches costs several times as much as none.
constexpr int prefetchAheadBytes = 2048;

}  // namespace cpu
