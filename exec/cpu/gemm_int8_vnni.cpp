#if defined(__x86_64__)

#include <immintrin.h>

#include "gemm.h"
#include "gemm_int8.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#pragma GCC optimize("fp-contract=off")

#include "gemm_int8_avx512.h"

namespace cpu {

namespace {

// VPDPBUSD: bytes without sign times bytes with sign; sums of four products wrap and do not saturate.
struct Quads {
  using Factor = __m512i;
  static inline Factor factor(__m512i four) { return four; }
  static inline __m512i add(__m512i sums, __m512i bytes, Factor x) {
    return _mm512_dpbusd_epi32(sums, bytes, x);
  }
};

}  // namespace

void gemmInt8BlocksVnni(const GemmInt8& g, int64_t begin, int64_t end) { passes<Quads>(g, begin, end); }

}  // namespace cpu

#pragma GCC pop_options

#endif
