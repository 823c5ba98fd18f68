// For llama.cpp: GCC's _tile_loadconfig says that it reads 8 bytes of the configuration, so that the other 56 may
// never be written, and the next tile instruction is illegal (seen with GCC 12; llama.cpp pull request 26954).
#pragma once

#if defined(__AMX_TILE__)
#include <immintrin.h>
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %X0" ::"m"(*(const char(*)[64])(config)))
#endif
