// Sixteen float32 side by side, in whatever registers the including file's target has.
//
// This header is included once by each lanes_*.cpp, after its target pragma. Everything is local to that
// file, so that code for one set of instructions is never linked into another. Sums go in the same order on
// every path; paths with a fused multiply-add round once where the others round twice.
#pragma once

#include <stdint.h>
#include <string.h>

namespace cpu {
namespace {

constexpr int laneCount = 16;

typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

#define LANES_INLINE inline __attribute__((always_inline))

LANES_INLINE Lanes spread(float f) { return f - Lanes{}; }

LANES_INLINE Lanes load(const float* p) {
  Lanes v;
  memcpy(&v, p, sizeof v);
  return v;
}

LANES_INLINE void store(float* p, Lanes v) { memcpy(p, &v, sizeof v); }

// The first count of 16 numbers, the rest zero.
LANES_INLINE Lanes loadPart(const float* p, int64_t count) {
  Lanes v = {};
  memcpy(&v, p, size_t(count) * sizeof(float));
  return v;
}

LANES_INLINE void storePart(float* p, Lanes v, int64_t count) {
  memcpy(p, &v, size_t(count) * sizeof(float));
}

LANES_INLINE Words wordsOf(Lanes v) { return reinterpret_cast<Words>(v); }
LANES_INLINE Lanes lanesOf(Words w) { return reinterpret_cast<Lanes>(w); }

// a * b + c. The including file says what it is compiled for: GCC 12 reads the whole file before it heeds a
// target pragma, and does not define __AVX512F__ and the like.
LANES_INLINE Lanes multiplyAdd(Lanes a, Lanes b, Lanes c) {
#if defined(LANES_AVX512)
  return reinterpret_cast<Lanes>(_mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b),
                                                 reinterpret_cast<__m512>(c)));
#elif defined(LANES_AVX2)
  __m256 x[2], y[2], z[2];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  memcpy(z, &c, sizeof z);
  for (int i = 0; i < 2; i++) z[i] = _mm256_fmadd_ps(x[i], y[i], z[i]);
  memcpy(&c, z, sizeof z);
  return c;
#else
  return a * b + c;
#endif
}

// The sum and the largest of the lanes, by halves: lane i with lane i + 8, and so on.
LANES_INLINE float sumOf(Lanes v) {
  float f[laneCount];
  store(f, v);
  for (int half = laneCount / 2; half; half /= 2) {
    for (int i = 0; i < half; i++) f[i] += f[i + half];
  }
  return f[0];
}

LANES_INLINE float maxOf(Lanes v) {
  float f[laneCount];
  store(f, v);
  for (int half = laneCount / 2; half; half /= 2) {
    for (int i = 0; i < half; i++) f[i] = f[i] > f[i + half] ? f[i] : f[i + half];
  }
  return f[0];
}

// A line of 16 pairs of bf16: the first and the second of each pair.
LANES_INLINE Words loadPairs(const uint16_t* p) {
  Words w;
  memcpy(&w, p, sizeof w);
  return w;
}

LANES_INLINE Lanes firsts(Words pairs) { return lanesOf(pairs << 16); }
LANES_INLINE Lanes seconds(Words pairs) { return lanesOf(pairs & 0xffff0000u); }

// Sixteen bf16, rounded as narrow() in bf16.h does.
LANES_INLINE Halves narrowed(Lanes v) {
  Words bits = wordsOf(v);
  Words rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  Words quiet = bits >> 16 | 0x40u;
  Words isNumber = reinterpret_cast<Words>(v == v);
  return __builtin_convertvector((rounded & isNumber) | (quiet & ~isNumber), Halves);
}

LANES_INLINE void storeHalves(uint16_t* p, Lanes v, int64_t count) {
  Halves h = narrowed(v);
  memcpy(p, &h, size_t(count) * sizeof(uint16_t));
}

// e^x with a relative error of at most 2e-7: 0 below -87, no more than e^88 above 88, NaN for NaN. The
// polynomial is that of expf in Cephes (S. Moshier).
LANES_INLINE Lanes exponential(Lanes x) {
  const Lanes least = spread(-87.0f), most = spread(88.0f);
  Lanes zeroed = x;
  x = x > most ? most : x;
  x = x < least ? least : x;
  // Adding 1.5 * 2^23 rounds to a whole number, which the low bits then hold.
  const Lanes rounder = spread(12582912.0f);
  Lanes shifted = multiplyAdd(x, spread(1.44269504088896341f), rounder);
  Lanes whole = shifted - rounder;
  Lanes rest = multiplyAdd(whole, spread(-0.693359375f), x);
  rest = multiplyAdd(whole, spread(2.12194440e-4f), rest);
  Lanes p = spread(1.9875691500e-4f);
  p = multiplyAdd(p, rest, spread(1.3981999507e-3f));
  p = multiplyAdd(p, rest, spread(8.3334519073e-3f));
  p = multiplyAdd(p, rest, spread(4.1665795894e-2f));
  p = multiplyAdd(p, rest, spread(1.6666665459e-1f));
  p = multiplyAdd(p, rest, spread(5.0000001201e-1f));
  p = multiplyAdd(p, rest * rest, rest + 1.0f);
  Lanes power = lanesOf((wordsOf(shifted) + 127u) << 23);
  return zeroed < least ? Lanes{} : p * power;
}

}  // namespace
}  // namespace cpu
