#if defined(__x86_64__)

#include <immintrin.h>

#include "gemm.h"
#include "gemm_int8.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#pragma GCC optimize("fp-contract=off")

#include "gemm_int8_avx512.h"

namespace cpu {

namespace {

// Bytes widened to 16 bits, which VPMADDWD multiplies and adds exactly; VPMADDUBSW would saturate.
struct Widened {
  struct Factor {
    __m512i even, odd;
  };
  static inline Factor factor(__m512i four) {
    return {_mm512_srai_epi16(_mm512_slli_epi16(four, 8), 8), _mm512_srai_epi16(four, 8)};
  }
  static inline __m512i add(__m512i sums, __m512i bytes, const Factor& x) {
    __m512i even = _mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), odd = _mm512_srli_epi16(bytes, 8);
    sums = _mm512_add_epi32(sums, _mm512_madd_epi16(even, x.even));
    return _mm512_add_epi32(sums, _mm512_madd_epi16(odd, x.odd));
  }
};

}  // namespace

void gemmInt8BlocksAvx512(const GemmInt8& g, int64_t begin, int64_t end) { passes<Widened>(g, begin, end); }

}  // namespace cpu

#pragma GCC pop_options

#endif
