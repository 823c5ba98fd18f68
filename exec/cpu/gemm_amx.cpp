#if defined(__x86_64__)

#include <immintrin.h>

#include "gemm.h"
#include "tiles.h"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

namespace cpu {

namespace {

constexpr int tileRowsMax = 16;
constexpr int groupRows = 2 * tileRowsMax;  // rows that share one reading of the weights
constexpr int64_t tileBytes = 2 * tileElements, lineBytes = 64, stepBytes = blockTiles * tileBytes;

// Tile registers. With up to 16 rows: 0 to 3 are sums, a tile of columns each. With more: 0 and 1 are sums
// of two tiles of columns for the upper 16 rows, 2 and 3 for the lower rows. 4 and 7 are activations, upper
// and lower; 5 and 6 weights. Their numbers are parts of instructions.
TileConfiguration configurationFor(int64_t rows) {
  TileConfiguration c;
  memset(&c, 0, sizeof c);
  c.palette = 1;
  uint8_t upper = uint8_t(rows < tileRowsMax ? rows : tileRowsMax);
  uint8_t lower = uint8_t(rows > tileRowsMax ? rows - tileRowsMax : upper);
  for (int t = 0; t < 8; t++) {
    c.rowBytes[t] = lineBytes;
    c.rows[t] = upper;
  }
  c.rows[2] = c.rows[3] = c.rows[7] = lower;
  c.rows[5] = c.rows[6] = tileLines;
  return c;
}

// Fetches one tile. Tile by tile between the products: all of a step at once would hold them up.
inline void fetchAhead(const char* p) {
  for (int64_t line = 0; line < tileBytes; line += lineBytes) {
    _mm_prefetch(p + prefetchAheadBytes + line, _MM_HINT_T1);
  }
}

// Up to 16 rows from m, one block of columns.
void passOfOneTile(const Gemm& g, int64_t m, int64_t b) {
  const Packed& w = g.weights;
  const char* p = reinterpret_cast<const char*>(w.block(b));
  const uint16_t* x = g.x + m * g.xStride;
  const int64_t xBytes = 2 * g.xStride, yBytes = 4 * g.yStride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < w.steps; step++, p += stepBytes, x += tileDepth) {
    _tile_loadd(4, x, xBytes);
    fetchAhead(p);
    _tile_loadd(5, p, lineBytes);
    _tile_dpbf16ps(0, 4, 5);
    fetchAhead(p + tileBytes);
    _tile_loadd(6, p + tileBytes, lineBytes);
    _tile_dpbf16ps(1, 4, 6);
    fetchAhead(p + 2 * tileBytes);
    _tile_loadd(5, p + 2 * tileBytes, lineBytes);
    _tile_dpbf16ps(2, 4, 5);
    fetchAhead(p + 3 * tileBytes);
    _tile_loadd(6, p + 3 * tileBytes, lineBytes);
    _tile_dpbf16ps(3, 4, 6);
  }
  float* y = g.y + m * g.yStride + b * blockColumns;
  _tile_stored(0, y, yBytes);
  _tile_stored(1, y + tileColumns, yBytes);
  _tile_stored(2, y + 2 * tileColumns, yBytes);
  _tile_stored(3, y + 3 * tileColumns, yBytes);
}

// 17 to 32 rows from m, one block of columns in two halves.
void passOfTwoTiles(const Gemm& g, int64_t m, int64_t b) {
  const Packed& w = g.weights;
  const int64_t xBytes = 2 * g.xStride, yBytes = 4 * g.yStride;
  for (int half = 0; half < 2; half++) {
    const char* p = reinterpret_cast<const char*>(w.block(b)) + 2 * half * tileBytes;
    const uint16_t *upper = g.x + m * g.xStride, *lower = upper + tileRowsMax * g.xStride;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t step = 0; step < w.steps; step++, p += stepBytes, upper += tileDepth, lower += tileDepth) {
      _tile_loadd(4, upper, xBytes);
      _tile_loadd(7, lower, xBytes);
      if (half == 0) {
        fetchAhead(p);
        fetchAhead(p + tileBytes);
      }
      _tile_loadd(5, p, lineBytes);
      _tile_dpbf16ps(0, 4, 5);
      _tile_dpbf16ps(2, 7, 5);
      if (half == 0) {  // for the second half as well, which then finds its weights near
        fetchAhead(p + 2 * tileBytes);
        fetchAhead(p + 3 * tileBytes);
      }
      _tile_loadd(6, p + tileBytes, lineBytes);
      _tile_dpbf16ps(1, 4, 6);
      _tile_dpbf16ps(3, 7, 6);
    }
    float* y = g.y + m * g.yStride + b * blockColumns + 2 * half * tileColumns;
    float* yLower = y + tileRowsMax * g.yStride;
    _tile_stored(0, y, yBytes);
    _tile_stored(1, y + tileColumns, yBytes);
    _tile_stored(2, yLower, yBytes);
    _tile_stored(3, yLower + tileColumns, yBytes);
  }
}

}  // namespace

void gemmBlocksAmx(const Gemm& g, int64_t begin, int64_t end) {
  const int64_t rest = g.rows % groupRows, whole = g.rows - rest;
  const TileConfiguration full = configurationFor(groupRows);
  const TileConfiguration tail = configurationFor(rest ? rest : groupRows);
  if (!rest) loadTileConfiguration(full);
  if (!whole) loadTileConfiguration(tail);
  for (int64_t b = begin; b < end; b++) {
    if (whole && rest) loadTileConfiguration(full);
    for (int64_t m = 0; m < whole; m += groupRows) passOfTwoTiles(g, m, b);
    if (!rest) continue;
    if (whole) loadTileConfiguration(tail);
    if (rest > tileRowsMax) {
      passOfTwoTiles(g, whole, b);
    } else {
      passOfOneTile(g, whole, b);
    }
  }
  releaseTiles();
}

}  // namespace cpu

#pragma GCC pop_options

#endif
