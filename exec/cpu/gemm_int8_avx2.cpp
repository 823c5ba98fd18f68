#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "gemm.h"
#include "gemm_int8.h"

#pragma GCC push_options
#pragma GCC target("avx2")
#pragma GCC optimize("fp-contract=off")

namespace cpu {

namespace {

constexpr int rowsAtOnce = 2, lanes = 8;
constexpr int passTiles = 2;  // tiles side by side in one pass over the inputs
constexpr int passVectors = passTiles * tileColumns / lanes;

// Sums products of bytes widened to 16 bits, which VPMADDWD adds exactly; VPMADDUBSW would saturate.
template <int rows>
inline void sumProducts(const int8_t* x, int64_t xStride, const uint8_t* tiles, int64_t steps,
                        __m256i (&sums)[rows][passVectors]) {
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm256_setzero_si256();
  }
  const __m256i lower = _mm256_set1_epi16(0xff);
  for (int64_t step = 0; step < steps; step++, tiles += int8StepBytes, x += int8TileDepth) {
    for (int r = 0; r < tileLines; r++) {
      __m256i xEven[rows], xOdd[rows];
      for (int i = 0; i < rows; i++) {
        int32_t four;
        memcpy(&four, x + i * xStride + 4 * r, sizeof four);
        __m256i all = _mm256_set1_epi32(four);
        xEven[i] = _mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8);
        xOdd[i] = _mm256_srai_epi16(all, 8);
      }
      for (int v = 0; v < passVectors; v++) {
        const uint8_t* p = tiles + v / 2 * int8TileBytes + r * int8LineBytes + v % 2 * 32;
        _mm_prefetch(reinterpret_cast<const char*>(p) + prefetchAheadBytes, _MM_HINT_T1);
        __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
        __m256i even = _mm256_and_si256(bytes, lower), odd = _mm256_srli_epi16(bytes, 8);
        for (int i = 0; i < rows; i++) {
          sums[i][v] = _mm256_add_epi32(sums[i][v], _mm256_madd_epi16(even, xEven[i]));
          sums[i][v] = _mm256_add_epi32(sums[i][v], _mm256_madd_epi16(odd, xOdd[i]));
        }
      }
    }
  }
}

// One block's columns of two tiles for the given number of rows. first is 0 or 2.
template <int rows>
void pass(const GemmInt8& g, int64_t m, int64_t b, int first) {
  const PackedInt8& w = g.weights;
  const int8_t* x = g.x.values + m * g.x.stride;
  const uint8_t* tiles = w.block(b);
  float* y = g.y + m * g.yStride + b * blockColumns + first * tileColumns;
  for (int64_t group = 0; group < w.groups; group++) {
    const int64_t steps = w.stepsOf(group);
    __m256i sums[rows][passVectors];
    sumProducts<rows>(x, g.x.stride, tiles + first * int8TileBytes, steps, sums);
    x += steps * int8TileDepth;
    tiles += steps * int8StepBytes;
    const float* scales = reinterpret_cast<const float*>(tiles) + first * tileColumns;
    for (int i = 0; i < rows; i++) {
      const RowGroup& of = g.x.groups[(m + i) * w.groups + group];
      for (int v = 0; v < passVectors; v++) {
        __m256i exact = _mm256_sub_epi32(sums[i][v], _mm256_set1_epi32(of.offset));
        __m256 term = _mm256_mul_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(of.scale));
        term = _mm256_mul_ps(term, _mm256_load_ps(scales + v * lanes));
        float* out = y + i * g.yStride + v * lanes;
        _mm256_storeu_ps(out, group ? _mm256_add_ps(_mm256_loadu_ps(out), term) : term);
      }
    }
    tiles += int8ScaleBytes;
  }
}

}  // namespace

void gemmInt8BlocksAvx2(const GemmInt8& g, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; b++) {
    for (int64_t m = 0; m < g.rows; m += rowsAtOnce) {
      for (int first = 0; first < blockTiles; first += passTiles) {
        if (g.rows - m >= rowsAtOnce) {
          pass<rowsAtOnce>(g, m, b, first);
        } else {
          pass<1>(g, m, b, first);
        }
      }
    }
  }
}

}  // namespace cpu

#pragma GCC pop_options

#endif
