#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "bf16.h"
#include "gemm.h"

namespace cpu {

namespace {

constexpr int rowsAtOnce = 4;
constexpr int tileBytes = 2 * tileElements, lineBytes = 4 * tileColumns;

}  // namespace

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")

namespace {

template <int rows>
void passFma(const Gemm& g, int64_t m, int64_t b) {
  const Packed& w = g.weights;
  __m512 sums[rows][blockTiles];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm512_setzero_ps();
  }
  const __m512i upper = _mm512_set1_epi32(int(0xffff0000));
  const char* tiles = reinterpret_cast<const char*>(w.block(b));
  for (int64_t k = 0; k < w.paddedDepth(); k += tileDepth, tiles += blockTiles * tileBytes) {
    for (int r = 0; r < tileLines; r++) {
      for (int t = 0; t < blockTiles; t++) {
        const char* p = tiles + t * tileBytes + r * lineBytes;
        _mm_prefetch(p + prefetchAheadBytes, _MM_HINT_T1);
        __m512i pairs = _mm512_load_si512(p);
        __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
        __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, upper));
        for (int i = 0; i < rows; i++) {
          const uint16_t* x = g.x + (m + i) * g.xStride + k + 2 * r;
          sums[i][t] = _mm512_fmadd_ps(_mm512_set1_ps(widen(x[0])), even, sums[i][t]);
          sums[i][t] = _mm512_fmadd_ps(_mm512_set1_ps(widen(x[1])), odd, sums[i][t]);
        }
      }
    }
  }
  for (int i = 0; i < rows; i++) {
    float* out = g.y + (m + i) * g.yStride + b * blockColumns;
    for (int t = 0; t < blockTiles; t++) _mm512_storeu_ps(out + t * tileColumns, sums[i][t]);
  }
}

}  // namespace

void gemmBlocksAvx512(const Gemm& g, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; b++) {
    int64_t m = 0;
    for (; g.rows - m >= rowsAtOnce; m += rowsAtOnce) passFma<rowsAtOnce>(g, m, b);
    for (; m < g.rows; m++) passFma<1>(g, m, b);
  }
}

#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace {

template <int rows>
void passPairs(const Gemm& g, int64_t m, int64_t b) {
  const Packed& w = g.weights;
  __m512 sums[rows][blockTiles];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm512_setzero_ps();
  }
  const char* tiles = reinterpret_cast<const char*>(w.block(b));
  for (int64_t k = 0; k < w.paddedDepth(); k += tileDepth, tiles += blockTiles * tileBytes) {
    for (int r = 0; r < tileLines; r++) {
      __m512bh x[rows];
      for (int i = 0; i < rows; i++) {
        int32_t pair;
        memcpy(&pair, g.x + (m + i) * g.xStride + k + 2 * r, sizeof pair);
        x[i] = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      }
      for (int t = 0; t < blockTiles; t++) {
        const char* p = tiles + t * tileBytes + r * lineBytes;
        _mm_prefetch(p + prefetchAheadBytes, _MM_HINT_T1);
        __m512bh pairs = reinterpret_cast<__m512bh>(_mm512_load_si512(p));
        for (int i = 0; i < rows; i++) sums[i][t] = _mm512_dpbf16_ps(sums[i][t], x[i], pairs);
      }
    }
  }
  for (int i = 0; i < rows; i++) {
    float* out = g.y + (m + i) * g.yStride + b * blockColumns;
    for (int t = 0; t < blockTiles; t++) _mm512_storeu_ps(out + t * tileColumns, sums[i][t]);
  }
}

}  // namespace

void gemmBlocksAvx512Bf16(const Gemm& g, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; b++) {
    int64_t m = 0;
    for (; g.rows - m >= rowsAtOnce; m += rowsAtOnce) passPairs<rowsAtOnce>(g, m, b);
    for (; m < g.rows; m++) passPairs<1>(g, m, b);
  }
}

#pragma GCC pop_options

}  // namespace cpu

#endif
