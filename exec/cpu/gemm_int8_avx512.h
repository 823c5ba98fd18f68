// What the kernels of 8 bit products with AVX-512 registers share. Included inside the target of each.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "gemm.h"
#include "gemm_int8.h"

namespace cpu {
namespace {

inline void fetchAhead(const uint8_t* line) {
  _mm_prefetch(reinterpret_cast<const char*>(line) + prefetchAheadBytes, _MM_HINT_T1);
}

// The term of one group for 16 columns: (float(sums - offset) * row scale) * column scales.
inline __m512 termOf(__m512i sums, const RowGroup& row, const uint8_t* scales) {
  __m512i exact = _mm512_sub_epi32(sums, _mm512_set1_epi32(row.offset));
  __m512 term = _mm512_mul_ps(_mm512_cvtepi32_ps(exact), _mm512_set1_ps(row.scale));
  return _mm512_mul_ps(term, _mm512_load_ps(scales));
}

// One block of columns for rows rows from m. Dot says how four inputs of a row, spread to a Factor, and a
// line of weights are multiplied and added to 16 sums.
template <class Dot, int rows>
void pass(const GemmInt8& g, int64_t m, int64_t b) {
  const PackedInt8& w = g.weights;
  const int8_t* x = g.x.values + m * g.x.stride;
  const uint8_t* p = w.block(b);
  float* y = g.y + m * g.yStride + b * blockColumns;
  for (int64_t group = 0; group < w.groups; group++) {
    __m512i sums[rows][blockTiles];
    for (auto& row : sums) {
      for (auto& sum : row) sum = _mm512_setzero_si512();
    }
    for (int64_t steps = w.stepsOf(group); steps; steps--, p += int8StepBytes, x += int8TileDepth) {
      for (int r = 0; r < tileLines; r++) {
        typename Dot::Factor factors[rows];
        for (int i = 0; i < rows; i++) {
          int32_t four;
          memcpy(&four, x + i * g.x.stride + 4 * r, sizeof four);
          factors[i] = Dot::factor(_mm512_set1_epi32(four));
        }
        for (int t = 0; t < blockTiles; t++) {
          const uint8_t* line = p + t * int8TileBytes + r * int8LineBytes;
          fetchAhead(line);
          __m512i bytes = _mm512_load_si512(line);
          for (int i = 0; i < rows; i++) sums[i][t] = Dot::add(sums[i][t], bytes, factors[i]);
        }
      }
    }
    for (int t = 0; t < blockTiles; t++, p += int8LineBytes) {
      fetchAhead(p);
      for (int i = 0; i < rows; i++) {
        const RowGroup& row = g.x.groups[(m + i) * w.groups + group];
        float* out = y + i * g.yStride + t * tileColumns;
        __m512 term = termOf(sums[i][t], row, p);
        _mm512_storeu_ps(out, group ? _mm512_add_ps(_mm512_loadu_ps(out), term) : term);
      }
    }
  }
}

template <class Dot>
void passes(const GemmInt8& g, int64_t begin, int64_t end) {
  constexpr int rowsAtOnce = 4;
  for (int64_t b = begin; b < end; b++) {
    int64_t m = 0;
    for (; g.rows - m >= rowsAtOnce; m += rowsAtOnce) pass<Dot, rowsAtOnce>(g, m, b);
    for (; m < g.rows; m++) pass<Dot, 1>(g, m, b);
  }
}

}  // namespace
}  // namespace cpu
