// The state of the AMX tile registers.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace cpu {

// The operand of LDTILECFG: Intel SDM, volume 1, section 18.2.
struct alignas(64) TileConfiguration {
  uint8_t palette, startRow;
  uint8_t reserved[14];
  uint16_t rowBytes[16];
  uint8_t rows[16];
};

static_assert(sizeof(TileConfiguration) == 64, "LDTILECFG reads 64 bytes");

#pragma GCC push_options
#pragma GCC target("amx-tile")

inline void loadTileConfiguration(const TileConfiguration& c) {
  // The intrinsic of GCC 12 says that it reads 8 bytes only: without this the rest may not be written yet.
  __asm__ volatile("" : : "r"(&c) : "memory");
  _tile_loadconfig(&c);
}

inline void releaseTiles() { _tile_release(); }

#pragma GCC pop_options

}  // namespace cpu
