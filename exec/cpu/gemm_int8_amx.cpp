#if defined(__x86_64__)

#include <immintrin.h>

#include "gemm.h"
#include "gemm_int8.h"
#include "tiles.h"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl")
#pragma GCC optimize("fp-contract=off")

#include "gemm_int8_avx512.h"

namespace cpu {

namespace {

constexpr int tileRowsMax = 16;
constexpr int rowsAtOnce = 2 * tileRowsMax;  // rows that share one reading of the weights

// Tile registers, whose numbers are parts of instructions. With up to 16 rows, 0 to 3 are sums, a tile of
// columns each; with more, 0 and 1 are sums of two tiles of columns for the upper 16 rows, 2 and 3 for the
// lower rows. 4 and 7 are activations, upper and lower; 5 and 6 weights.
TileConfiguration configurationFor(int64_t rows) {
  TileConfiguration c;
  memset(&c, 0, sizeof c);
  c.palette = 1;
  uint8_t upper = uint8_t(rows < tileRowsMax ? rows : tileRowsMax);
  uint8_t lower = uint8_t(rows > tileRowsMax ? rows - tileRowsMax : upper);
  for (int t = 0; t < 8; t++) {
    c.rowBytes[t] = int8LineBytes;
    c.rows[t] = upper;
  }
  c.rows[2] = c.rows[3] = c.rows[7] = lower;
  c.rows[5] = c.rows[6] = tileLines;
  return c;
}

inline void fetchTileAhead(const uint8_t* p) {
  for (int line = 0; line < tileLines; line++) fetchAhead(p + line * int8LineBytes);
}

// Sums of a pass, over one group and over the groups before it. Rows of y may drive one another out of the
// nearest cache; y is written once, with the last group.
template <int rows, int tiles>
struct Sums {
  alignas(64) int32_t products[rows][tiles * tileColumns];
  alignas(64) float terms[rows][tiles * tileColumns];

  // Adds a group of the rows from m, count of them. y is where the pass writes.
  inline void add(const GemmInt8& g, int64_t m, int64_t count, int64_t group, const uint8_t* scales,
                  float* y) {
    const int64_t groups = g.weights.groups;
    for (int64_t i = 0; i < count; i++) {
      const RowGroup row = g.x.groups[(m + i) * groups + group];
      float* out = group + 1 < groups ? terms[i] : y + i * g.yStride;
      for (int t = 0; t < tiles; t++) {
        __m512i sums = _mm512_load_si512(products[i] + t * tileColumns);
        __m512 term = termOf(sums, row, scales + t * int8LineBytes);
        if (group) term = _mm512_add_ps(_mm512_load_ps(terms[i] + t * tileColumns), term);
        _mm512_storeu_ps(out + t * tileColumns, term);
      }
    }
  }
};

// Up to 16 rows from m, one block of columns.
void passOfOneTile(const GemmInt8& g, int64_t m, int64_t rows, int64_t b) {
  Sums<tileRowsMax, blockTiles> sums;
  constexpr int64_t rowBytes = sizeof sums.products[0];
  const PackedInt8& w = g.weights;
  const uint8_t* p = w.block(b);
  const int8_t* x = g.x.values + m * g.x.stride;
  float* y = g.y + m * g.yStride + b * blockColumns;
  for (int64_t group = 0; group < w.groups; group++) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t steps = w.stepsOf(group); steps; steps--, p += int8StepBytes, x += int8TileDepth) {
      _tile_loadd(4, x, g.x.stride);
      fetchTileAhead(p);
      _tile_loadd(5, p, int8LineBytes);
      _tile_dpbsud(0, 4, 5);
      fetchTileAhead(p + int8TileBytes);
      _tile_loadd(6, p + int8TileBytes, int8LineBytes);
      _tile_dpbsud(1, 4, 6);
      fetchTileAhead(p + 2 * int8TileBytes);
      _tile_loadd(5, p + 2 * int8TileBytes, int8LineBytes);
      _tile_dpbsud(2, 4, 5);
      fetchTileAhead(p + 3 * int8TileBytes);
      _tile_loadd(6, p + 3 * int8TileBytes, int8LineBytes);
      _tile_dpbsud(3, 4, 6);
    }
    int32_t* products = sums.products[0];
    _tile_stored(0, products, rowBytes);
    _tile_stored(1, products + tileColumns, rowBytes);
    _tile_stored(2, products + 2 * tileColumns, rowBytes);
    _tile_stored(3, products + 3 * tileColumns, rowBytes);
    for (int t = 0; t < blockTiles; t++) fetchAhead(p + t * int8LineBytes);
    sums.add(g, m, rows, group, p, y);
    p += int8ScaleBytes;
  }
}

// 17 to 32 rows from m, one half of a block of columns: tiles 2 * half and the next. The first half fetches
// for both.
void passOfTwoTiles(const GemmInt8& g, int64_t m, int64_t rows, int64_t b, int half) {
  Sums<rowsAtOnce, 2> sums;
  constexpr int64_t rowBytes = sizeof sums.products[0];
  const PackedInt8& w = g.weights;
  const uint8_t* p = w.block(b);
  const int8_t* x = g.x.values + m * g.x.stride;
  float* y = g.y + m * g.yStride + b * blockColumns + 2 * half * tileColumns;
  for (int64_t group = 0; group < w.groups; group++) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t steps = w.stepsOf(group); steps; steps--, p += int8StepBytes, x += int8TileDepth) {
      const uint8_t* tiles = p + 2 * half * int8TileBytes;
      _tile_loadd(4, x, g.x.stride);
      _tile_loadd(7, x + tileRowsMax * g.x.stride, g.x.stride);
      if (half == 0) {
        fetchTileAhead(p);
        fetchTileAhead(p + int8TileBytes);
      }
      _tile_loadd(5, tiles, int8LineBytes);
      _tile_dpbsud(0, 4, 5);
      _tile_dpbsud(2, 7, 5);
      if (half == 0) {
        fetchTileAhead(p + 2 * int8TileBytes);
        fetchTileAhead(p + 3 * int8TileBytes);
      }
      _tile_loadd(6, tiles + int8TileBytes, int8LineBytes);
      _tile_dpbsud(1, 4, 6);
      _tile_dpbsud(3, 7, 6);
    }
    _tile_stored(0, sums.products[0], rowBytes);
    _tile_stored(1, sums.products[0] + tileColumns, rowBytes);
    _tile_stored(2, sums.products[tileRowsMax], rowBytes);
    _tile_stored(3, sums.products[tileRowsMax] + tileColumns, rowBytes);
    for (int t = 0; half == 0 && t < blockTiles; t++) fetchAhead(p + t * int8LineBytes);
    sums.add(g, m, rows, group, p + 2 * half * int8LineBytes, y);
    p += int8ScaleBytes;
  }
}

// All of a block for rows rows from m, at most 32, for which the tiles are configured.
void passOf(const GemmInt8& g, int64_t m, int64_t rows, int64_t b) {
  if (rows <= tileRowsMax) {
    passOfOneTile(g, m, rows, b);
    return;
  }
  passOfTwoTiles(g, m, rows, b, 0);
  passOfTwoTiles(g, m, rows, b, 1);
}

}  // namespace

void gemmInt8BlocksAmx(const GemmInt8& g, int64_t begin, int64_t end) {
  const int64_t rest = g.rows % rowsAtOnce, whole = g.rows - rest;
  const TileConfiguration full = configurationFor(rowsAtOnce);
  const TileConfiguration tail = configurationFor(rest ? rest : rowsAtOnce);
  if (!rest) loadTileConfiguration(full);
  if (!whole) loadTileConfiguration(tail);
  for (int64_t b = begin; b < end; b++) {
    if (whole && rest) loadTileConfiguration(full);
    for (int64_t m = 0; m < whole; m += rowsAtOnce) passOf(g, m, rowsAtOnce, b);
    if (!rest) continue;
    if (whole) loadTileConfiguration(tail);
    passOf(g, whole, rest, b);
  }
  releaseTiles();
}

}  // namespace cpu

#pragma GCC pop_options

#endif
