#include "stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "paths.h"
#include "gemm.h"

namespace cpu {

namespace {

constexpr int64_t chunkBytes = 4096, lineBytes = 64;

uint64_t sumWords(const char* p, int64_t bytes) {
  uint64_t sum = 0;
  const uint64_t* words = reinterpret_cast<const uint64_t*>(p);
  for (int64_t i = 0; i < bytes / 8; i++) sum += words[i];
  return sum;
}

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx512f")

uint64_t sumWordsAvx512(const char* p, int64_t bytes) {
  __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                     _mm512_setzero_si512()};
  int64_t at = 0;
  for (; at + 4 * lineBytes <= bytes; at += 4 * lineBytes) {
    for (int i = 0; i < 4; i++) {
      const char* line = p + at + i * lineBytes;
      _mm_prefetch(line + prefetchAheadBytes, _MM_HINT_T1);
      sums[i] = _mm512_add_epi64(sums[i], _mm512_load_si512(line));
    }
  }
  alignas(64) uint64_t lanes[32];
  for (int i = 0; i < 4; i++) _mm512_store_si512(lanes + 8 * i, sums[i]);
  return sumWords(reinterpret_cast<char*>(lanes), sizeof lanes) + sumWords(p + at, bytes - at);
}

#pragma GCC pop_options

#endif

}  // namespace

bool streamSum(Workers& workers, const void* data, int64_t bytes, uint64_t* sum) {
  auto words = sumWords;
#if defined(__x86_64__)
  if (available(Path::avx512)) words = sumWordsAvx512;
#endif
  std::atomic<uint64_t> total{0};
  auto body = [&](int worker) {
    Range share = shareOf((bytes + chunkBytes - 1) / chunkBytes, worker, workers.count());
    int64_t begin = share.begin * chunkBytes, end = share.end * chunkBytes;
    if (end > bytes) end = bytes;
    total += words(static_cast<const char*>(data) + begin, end - begin);
  };
  if (!workers.run(body)) return false;
  *sum = total;
  return true;
}

}  // namespace cpu
