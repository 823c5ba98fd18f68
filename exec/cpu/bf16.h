// bfloat16: the upper half of a float32.
#pragma once

#include <stdint.h>
#include <string.h>

namespace cpu {

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

}  // namespace cpu
