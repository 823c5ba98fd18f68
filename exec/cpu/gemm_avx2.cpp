#if defined(__x86_64__)

#include <immintrin.h>

#include "bf16.h"
#include "gemm.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace cpu {

namespace {

constexpr int rowsAtOnce = 2, lanes = 8;
constexpr int passTiles = 2;  // tiles side by side in one pass over the inputs
constexpr int passVectors = passTiles * tileColumns / lanes;  // 8 sums of two rows: registers are left

// Adds one block's columns of two tiles for the given number of rows. first is 0 or 2.
template <int rows>
void pass(const Gemm& g, int64_t m, int64_t b, int first) {
  const Packed& w = g.weights;
  __m256 sums[rows][passVectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm256_setzero_ps();
  }
  const __m256i upper = _mm256_set1_epi32(int(0xffff0000));
  const char* tile = reinterpret_cast<const char*>(w.block(b) + first * tileElements);
  constexpr int tileBytes = 2 * tileElements, lineBytes = 4 * tileColumns;
  for (int64_t k = 0; k < w.paddedDepth(); k += tileDepth, tile += blockTiles * tileBytes) {
    for (int r = 0; r < tileLines; r++) {
      for (int v = 0; v < passVectors; v++) {
        const char* p = tile + v / 2 * tileBytes + r * lineBytes + v % 2 * 32;
        _mm_prefetch(p + prefetchAheadBytes, _MM_HINT_T1);
        __m256i pairs = _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
        __m256 even = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
        __m256 odd = _mm256_castsi256_ps(_mm256_and_si256(pairs, upper));
        for (int i = 0; i < rows; i++) {
          const uint16_t* x = g.x + (m + i) * g.xStride + k + 2 * r;
          sums[i][v] = _mm256_fmadd_ps(_mm256_set1_ps(widen(x[0])), even, sums[i][v]);
          sums[i][v] = _mm256_fmadd_ps(_mm256_set1_ps(widen(x[1])), odd, sums[i][v]);
        }
      }
    }
  }
  for (int i = 0; i < rows; i++) {
    float* out = g.y + (m + i) * g.yStride + b * blockColumns + first * tileColumns;
    for (int v = 0; v < passVectors; v++) _mm256_storeu_ps(out + v * lanes, sums[i][v]);
  }
}

}  // namespace

void gemmBlocksAvx2(const Gemm& g, int64_t begin, int64_t end) {
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
