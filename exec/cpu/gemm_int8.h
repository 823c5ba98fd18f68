// Matrix products of activations and weights of 8 bits.
#pragma once

#include <stdint.h>

#include "packed_int8.h"
#include "paths.h"
#include "quantise.h"
#include "workers.h"

namespace cpu {

// y[m][n] = sum over groups of (float(s) * x scale) * weight scale, fp32, in the order of the groups, each
// operation rounded once, s the exact sum of the group's products of whole numbers. Without groups that is
// one term.
//
// Therefore all paths give the same bits, for any number of rows and threads. Bound against exact sums of
// what was quantised: gemmInt8Tolerance * (groups + 2) * sum over groups of the terms' magnitudes.
//
// A NaN or infinity in row m of the activations makes row m of y NaN and reaches no other row; one in the
// weights of column n makes that column NaN.
struct GemmInt8 {
  int64_t rows;  // 1 or more
  QuantisedRows x;
  PackedInt8 weights;
  float* y;
  int64_t yStride;  // elements a row, at least weights.paddedColumns(), which are all written
};

constexpr double gemmInt8Tolerance = 1.001 * 0x1p-24;  // half a unit in the last place, and what powers add

// Computes the columns of blocks begin to end - 1. It needs no state of the calling thread and leaves none.
using GemmInt8Blocks = void (*)(const GemmInt8& g, int64_t begin, int64_t end);

// The kernel of an available path.
GemmInt8Blocks gemmInt8Blocks(Path path);

// The whole product, on all workers; to be called outside a run. False if one is going on.
bool gemmInt8(Workers& workers, Path path, const GemmInt8& g);

// The same product in double, rows and columns without padding, y[rows][columns]; magnitude has the sums of
// the groups' magnitudes.
void gemmInt8Reference(const GemmInt8& g, double* y, double* magnitude);

void gemmInt8BlocksPlain(const GemmInt8& g, int64_t begin, int64_t end);
#if defined(__x86_64__)
void gemmInt8BlocksAvx2(const GemmInt8& g, int64_t begin, int64_t end);
void gemmInt8BlocksAvx512(const GemmInt8& g, int64_t begin, int64_t end);
void gemmInt8BlocksVnni(const GemmInt8& g, int64_t begin, int64_t end);
void gemmInt8BlocksAmx(const GemmInt8& g, int64_t begin, int64_t end);
#endif

}  // namespace cpu
