// Numbers of 16 bits.
#pragma once

#include <stdint.h>
#include <string.h>

namespace native {

// bfloat16: the upper half of a float32.
inline float widen(uint16_t b) {
  uint32_t bits = uint32_t(b) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// Rounds to the nearest bfloat16, ties to even. Too large becomes infinity; a NaN stays a NaN (quiet, sign
// and upper payload kept); subnormals are kept.
inline uint16_t narrow(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// IEEE 754 binary16, exactly; a NaN keeps its sign and payload.
inline float widenF16(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
  if (exponent == 0) {
    float tiny = float(fraction) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }
  uint32_t bits = exponent == 0x1f ? sign | 0x7f800000u | fraction << 13
                                   : sign | (exponent + 112) << 23 | fraction << 13;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

}  // namespace native
