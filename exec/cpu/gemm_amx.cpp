#if defined(__x86_64__)

#include <immintrin.h>

#include "gemm.h"
#include "tiles.h"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16,prfchw")

namespace cpu {

namespace {

constexpr int64_t tileRows = 16, groupRows = 3 * tileRows;
constexpr int64_t tileBytes = 2 * tileElements, lineBytes = 64, stepBytes = blockTiles * tileBytes;

// Activations of one panel, which stay in the second-level cache while the weights go by, and how many inputs
// it spans. Half of that cache: the other half has the weights of two blocks and the results.
constexpr int64_t panelBytes = 1 << 20, panelDepthMax = 2048;

// One pass through some steps of inputs: up to 48 rows and the columns of a block or half of one.
struct Pass {
  const uint16_t* x;
  const char* weights;
  float* y;
  int64_t xStride, yStride;  // elements
  int64_t steps;
  bool first;  // sums begin at zero; otherwise they go on from y
};

// Fetches the weights that come soon after those in use, as a product of few rows needs them at the speed of
// memory. Tile by tile between the products: all of a step at once would hold them up.
struct FetchSoon {
  void tile(const char* inUse) {
    for (int64_t line = 0; line < tileBytes; line += lineBytes) {
      _mm_prefetch(inUse + prefetchAheadBytes + line, _MM_HINT_T1);
    }
  }
};

// Fetches the weights of the next block while many rows use those of this one, evenly over all passes.
struct FetchNext {
  const char *at, *end;
  int64_t bytes;  // a tile in use
  void tile(const char*) {
    if (at >= end) return;
    for (int64_t line = 0; line < bytes; line += lineBytes) _mm_prefetch(at + line, _MM_HINT_T1);
    at += bytes;
  }
};

// Fetches, to be written, the lines of results that a pass of 48 rows will store at its end: by then they are
// far away, and stores wait for them one after another.
struct FetchResults {
  float* y;
  int64_t stride, rowsAStep, left;
  void step() {
    for (int64_t i = 0; i < rowsAStep && left > 0; i++, left--, y += stride) {
      __builtin_prefetch(y, 1);
      __builtin_prefetch(y + tileColumns, 1);
    }
  }
};

// Tile registers, whose numbers are parts of instructions. One tile of rows: 0 to 3 are sums, a tile of
// columns each, 4 activations, 5 and 6 weights. Two: 0 and 1 are sums of two tiles of columns for the upper
// rows, 2 and 3 for the lower, 4 and 7 their activations. Three: 0 to 5 are sums in the same order, 6 weights
// and 7 activations. rows is at most 32, or 48.
TileConfiguration configurationFor(int64_t rows) {
  TileConfiguration c;
  memset(&c, 0, sizeof c);
  c.palette = 1;
  for (int t = 0; t < 8; t++) {
    c.rowBytes[t] = lineBytes;
    c.rows[t] = uint8_t(rows < tileRows ? rows : tileRows);
  }
  if (rows < groupRows) c.rows[5] = c.rows[6] = tileLines;
  if (rows > tileRows && rows < groupRows) c.rows[2] = c.rows[3] = c.rows[7] = uint8_t(rows - tileRows);
  return c;
}

// Up to 16 rows, all columns of a block.
template <class Fetch>
void passOfOneTile(const Pass& p, Fetch& fetch) {
  const int64_t xBytes = 2 * p.xStride, yBytes = 4 * p.yStride;
  float* y = p.y;
  if (p.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, y, yBytes);
    _tile_loadd(1, y + tileColumns, yBytes);
    _tile_loadd(2, y + 2 * tileColumns, yBytes);
    _tile_loadd(3, y + 3 * tileColumns, yBytes);
  }
  const char* w = p.weights;
  const uint16_t* x = p.x;
  for (int64_t step = 0; step < p.steps; step++, w += stepBytes, x += tileDepth) {
    _tile_loadd(4, x, xBytes);
    fetch.tile(w);
    _tile_loadd(5, w, lineBytes);
    _tile_dpbf16ps(0, 4, 5);
    fetch.tile(w + tileBytes);
    _tile_loadd(6, w + tileBytes, lineBytes);
    _tile_dpbf16ps(1, 4, 6);
    fetch.tile(w + 2 * tileBytes);
    _tile_loadd(5, w + 2 * tileBytes, lineBytes);
    _tile_dpbf16ps(2, 4, 5);
    fetch.tile(w + 3 * tileBytes);
    _tile_loadd(6, w + 3 * tileBytes, lineBytes);
    _tile_dpbf16ps(3, 4, 6);
  }
  _tile_stored(0, y, yBytes);
  _tile_stored(1, y + tileColumns, yBytes);
  _tile_stored(2, y + 2 * tileColumns, yBytes);
  _tile_stored(3, y + 3 * tileColumns, yBytes);
}

// 17 to 32 rows, half the columns of a block.
void passOfTwoTiles(const Pass& p, FetchNext& fetch) {
  const int64_t xBytes = 2 * p.xStride, yBytes = 4 * p.yStride;
  float *y0 = p.y, *y1 = y0 + tileRows * p.yStride;
  if (p.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, y0, yBytes);
    _tile_loadd(1, y0 + tileColumns, yBytes);
    _tile_loadd(2, y1, yBytes);
    _tile_loadd(3, y1 + tileColumns, yBytes);
  }
  const char* w = p.weights;
  const uint16_t *x0 = p.x, *x1 = x0 + tileRows * p.xStride;
  for (int64_t step = 0; step < p.steps; step++, w += stepBytes, x0 += tileDepth, x1 += tileDepth) {
    _tile_loadd(4, x0, xBytes);
    _tile_loadd(5, w, lineBytes);
    fetch.tile(w);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(7, x1, xBytes);
    fetch.tile(w);
    _tile_dpbf16ps(2, 7, 5);
    _tile_loadd(6, w + tileBytes, lineBytes);
    fetch.tile(w);
    _tile_dpbf16ps(1, 4, 6);
    fetch.tile(w);
    _tile_dpbf16ps(3, 7, 6);
  }
  _tile_stored(0, y0, yBytes);
  _tile_stored(1, y0 + tileColumns, yBytes);
  _tile_stored(2, y1, yBytes);
  _tile_stored(3, y1 + tileColumns, yBytes);
}

// 48 rows, half the columns of a block. What limits it is the way from the second-level cache: five tiles for
// six products, two of three tiles of activations again from the nearest cache.
void passOfThreeTiles(const Pass& p, FetchNext& fetch) {
  const int64_t xBytes = 2 * p.xStride, yBytes = 4 * p.yStride;
  float *y0 = p.y, *y1 = y0 + tileRows * p.yStride, *y2 = y1 + tileRows * p.yStride;
  if (p.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  } else {
    _tile_loadd(0, y0, yBytes);
    _tile_loadd(1, y0 + tileColumns, yBytes);
    _tile_loadd(2, y1, yBytes);
    _tile_loadd(3, y1 + tileColumns, yBytes);
    _tile_loadd(4, y2, yBytes);
    _tile_loadd(5, y2 + tileColumns, yBytes);
  }
  const char* w = p.weights;
  const uint16_t *x0 = p.x, *x1 = x0 + tileRows * p.xStride, *x2 = x1 + tileRows * p.xStride;
  FetchResults results{y0, p.yStride, (groupRows + p.steps - 1) / p.steps, groupRows};
  for (int64_t step = 0; step < p.steps; step++, w += stepBytes) {
    _tile_loadd(6, w, lineBytes);
    _tile_loadd(7, x0, xBytes);
    fetch.tile(w);
    _tile_dpbf16ps(0, 7, 6);
    _tile_loadd(7, x1, xBytes);
    fetch.tile(w);
    _tile_dpbf16ps(2, 7, 6);
    results.step();
    _tile_loadd(7, x2, xBytes);
    _tile_dpbf16ps(4, 7, 6);
    _tile_loadd(6, w + tileBytes, lineBytes);
    fetch.tile(w);
    _tile_dpbf16ps(5, 7, 6);
    _tile_loadd(7, x1, xBytes);
    fetch.tile(w);
    _tile_dpbf16ps(3, 7, 6);
    _tile_loadd(7, x0, xBytes);
    _tile_dpbf16ps(1, 7, 6);
    x0 += tileDepth;
    x1 += tileDepth;
    x2 += tileDepth;
  }
  _tile_stored(0, y0, yBytes);
  _tile_stored(1, y0 + tileColumns, yBytes);
  _tile_stored(2, y1, yBytes);
  _tile_stored(3, y1 + tileColumns, yBytes);
  _tile_stored(4, y2, yBytes);
  _tile_stored(5, y2 + tileColumns, yBytes);
}

// Some rows and some steps of inputs of a product.
struct Panel {
  int64_t row, rows, step, steps;
};

Pass passOf(const Gemm& g, const Panel& p, int64_t row, int64_t block, int half) {
  const char* weights = reinterpret_cast<const char*>(g.weights.block(block)) + p.step * stepBytes;
  float* y = g.y + row * g.yStride + block * blockColumns + half * 2 * tileColumns;
  return {g.x + row * g.xStride + p.step * tileDepth, weights + half * 2 * tileBytes, y, g.xStride, g.yStride,
          p.steps, p.step == 0};
}

// Every block of weights comes from memory once and serves all rows of the panel. next is the panel after,
// with no rows if there is none.
void multiplyPanel(const Gemm& g, const Panel& p, const Panel& next, int64_t begin, int64_t end) {
  const int64_t rest = p.rows % groupRows, inGroups = p.rows - rest;
  const int64_t inTwo = rest <= tileRows ? 0 : rest < 2 * tileRows ? rest : 2 * tileRows;
  const int64_t inOne = rest - inTwo, passes = 2 * (inGroups / groupRows) + 2 * (inTwo > 0) + (inOne > 0);
  const TileConfiguration groups = configurationFor(groupRows), two = configurationFor(inTwo);
  const TileConfiguration one = configurationFor(inOne);
  const int64_t bytes = (tileBytes / passes + lineBytes - 1) / lineBytes * lineBytes;
  for (int64_t b = begin; b < end; b++) {
    const Panel& ahead = b + 1 < end ? p : next;
    const char* at = passOf(g, ahead, 0, b + 1 < end ? b + 1 : begin, 0).weights;
    FetchNext fetch{at, at + (ahead.rows ? ahead.steps * stepBytes : 0), bytes};
    int64_t row = p.row;
    if (inGroups) loadTileConfiguration(groups);
    for (; row < p.row + inGroups; row += groupRows) {
      for (int half = 0; half < 2; half++) passOfThreeTiles(passOf(g, p, row, b, half), fetch);
    }
    if (inTwo) {
      loadTileConfiguration(two);
      for (int half = 0; half < 2; half++) passOfTwoTiles(passOf(g, p, row, b, half), fetch);
    }
    if (inOne) {
      loadTileConfiguration(one);
      passOfOneTile(passOf(g, p, row + inTwo, b, 0), fetch);
    }
  }
}

void manyRows(const Gemm& g, int64_t begin, int64_t end) {
  const int64_t depths = (g.weights.paddedDepth() + panelDepthMax - 1) / panelDepthMax;
  const int64_t steps = (g.weights.steps + depths - 1) / depths;
  int64_t rows = panelBytes / (2 * tileDepth * steps) / groupRows * groupRows;
  if (rows < groupRows) rows = groupRows;
  auto sized = [&](int64_t row, int64_t step) {
    int64_t rowsLeft = g.rows - row, stepsLeft = g.weights.steps - step;
    return Panel{row, rowsLeft < rows ? rowsLeft : rows, step, stepsLeft < steps ? stepsLeft : steps};
  };
  for (Panel p = sized(0, 0), next; p.rows > 0; p = next) {
    next = p.step + p.steps < g.weights.steps ? sized(p.row, p.step + p.steps) : sized(p.row + p.rows, 0);
    multiplyPanel(g, p, next, begin, end);
  }
}

}  // namespace

void gemmBlocksAmx(const Gemm& g, int64_t begin, int64_t end) {
  if (g.rows > tileRows) {
    manyRows(g, begin, end);
  } else {
    loadTileConfiguration(configurationFor(g.rows));
    FetchSoon fetch;
    const Panel all{0, g.rows, 0, g.weights.steps};
    for (int64_t b = begin; b < end; b++) passOfOneTile(passOf(g, all, 0, b, 0), fetch);
  }
  releaseTiles();
}

}  // namespace cpu

#pragma GCC pop_options

#endif
