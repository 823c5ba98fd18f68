#include "gemm_int8.h"

#include <math.h>
#include <string.h>

#pragma GCC optimize("fp-contract=off")

namespace cpu {

GemmInt8Blocks gemmInt8Blocks(Path path) {
  switch (path) {
#if defined(__x86_64__)
    case Path::avx2: return gemmInt8BlocksAvx2;
    case Path::avx512: return gemmInt8BlocksAvx512;
    case Path::avx512bf16: return gemmInt8BlocksVnni;
    case Path::amx: return gemmInt8BlocksAmx;
#endif
    default: return gemmInt8BlocksPlain;
  }
}

bool gemmInt8(Workers& workers, Path path, const GemmInt8& g) {
  GemmInt8Blocks blocks = gemmInt8Blocks(path);
  auto body = [&](int worker) {
    Range share = shareOf(g.weights.blocks, worker, workers.count());
    blocks(g, share.begin, share.end);
  };
  return workers.run(body);
}

void gemmInt8Reference(const GemmInt8& g, double* y, double* magnitude) {
  const PackedInt8& w = g.weights;
  for (int64_t m = 0; m < g.rows; m++) {
    for (int64_t n = 0; n < w.columns; n++) {
      double sum = 0, size = 0;
      for (int64_t group = 0; group < w.groups; group++) {
        int64_t begin = group * w.groupSteps * int8TileDepth;
        int64_t end = begin + w.stepsOf(group) * int8TileDepth;
        if (end > w.depth) end = w.depth;
        int64_t products = 0;
        for (int64_t k = begin; k < end; k++) {
          products += g.x.values[m * g.x.stride + k] * (w.memory[w.offset(n, k)] - int8Zero);
        }
        float scale;
        memcpy(&scale, w.memory + w.scaleOffset(n, group), sizeof scale);
        double term = double(products) * double(g.x.groups[m * w.groups + group].scale) * double(scale);
        sum += term;
        size += fabs(term);
      }
      y[m * w.columns + n] = sum;
      magnitude[m * w.columns + n] = size;
    }
  }
}

namespace {

// The products of one row and one group with one block of columns.
void sumProducts(const int8_t* x, const uint8_t* tiles, int64_t steps, int32_t* sums) {
  memset(sums, 0, blockColumns * sizeof *sums);
  for (int64_t step = 0; step < steps; step++, x += int8TileDepth) {
    for (int t = 0; t < blockTiles; t++, tiles += int8TileBytes) {
      for (int r = 0; r < tileLines; r++) {
        const uint8_t* line = tiles + r * int8LineBytes;
        for (int c = 0; c < tileColumns; c++) {
          int32_t sum = 0;
          for (int i = 0; i < 4; i++) sum += x[4 * r + i] * (line[4 * c + i] - int8Zero);
          sums[t * tileColumns + c] += sum;
        }
      }
    }
  }
}

}  // namespace

void gemmInt8BlocksPlain(const GemmInt8& g, int64_t begin, int64_t end) {
  const PackedInt8& w = g.weights;
  for (int64_t b = begin; b < end; b++) {
    for (int64_t m = 0; m < g.rows; m++) {
      const int8_t* x = g.x.values + m * g.x.stride;
      const uint8_t* tiles = w.block(b);
      float* out = g.y + m * g.yStride + b * blockColumns;
      for (int64_t group = 0; group < w.groups; group++) {
        int32_t sums[blockColumns];
        float scales[blockColumns];
        const int64_t steps = w.stepsOf(group);
        sumProducts(x, tiles, steps, sums);
        memcpy(scales, tiles + steps * int8StepBytes, sizeof scales);
        const float rowScale = g.x.groups[m * w.groups + group].scale;
        for (int c = 0; c < blockColumns; c++) {
          float term = float(sums[c]) * rowScale * scales[c];
          out[c] = group ? out[c] + term : term;
        }
        x += steps * int8TileDepth;
        tiles += steps * int8StepBytes + int8ScaleBytes;
      }
    }
  }
}

}  // namespace cpu
