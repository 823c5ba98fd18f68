#include "gemm.h"

#include <math.h>

#include "bf16.h"

namespace cpu {

GemmBlocks gemmBlocks(Path path) {
  switch (path) {
#if defined(__x86_64__)
    case Path::avx2: return gemmBlocksAvx2;
    case Path::avx512: return gemmBlocksAvx512;
    case Path::avx512bf16: return gemmBlocksAvx512Bf16;
    case Path::amx: return gemmBlocksAmx;
#endif
    default: return gemmBlocksPlain;
  }
}

bool gemm(Workers& workers, Path path, const Gemm& g) {
  GemmBlocks blocks = gemmBlocks(path);
  auto body = [&](int worker) {
    Range share = shareOf(g.weights.blocks, worker, workers.count());
    blocks(g, share.begin, share.end);
  };
  return workers.run(body);
}

void gemmReference(const Gemm& g, double* y, double* magnitude) {
  const Packed& w = g.weights;
  for (int64_t m = 0; m < g.rows; m++) {
    for (int64_t n = 0; n < w.columns; n++) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < w.depth; k++) {
        double term = double(widen(g.x[m * g.xStride + k])) * double(widen(w.tiles[w.offset(n, k)]));
        sum += term;
        size += fabs(term);
      }
      y[m * w.columns + n] = sum;
      magnitude[m * w.columns + n] = size;
    }
  }
}

void gemmBlocksPlain(const Gemm& g, int64_t begin, int64_t end) {
  const Packed& w = g.weights;
  for (int64_t b = begin; b < end; b++) {
    for (int64_t m = 0; m < g.rows; m++) {
      float sums[blockColumns] = {0};
      const uint16_t* tile = w.block(b);
      for (int64_t k = 0; k < w.paddedDepth(); k += tileDepth) {
        for (int t = 0; t < blockTiles; t++, tile += tileElements) {
          for (int r = 0; r < tileLines; r++) {
            const uint16_t* x = g.x + m * g.xStride + k + 2 * r;
            float even = widen(x[0]), odd = widen(x[1]);
            const uint16_t* line = tile + r * 2 * tileColumns;
            float* sum = sums + t * tileColumns;
            for (int c = 0; c < tileColumns; c++) {
              sum[c] += even * widen(line[2 * c]);
              sum[c] += odd * widen(line[2 * c + 1]);
            }
          }
        }
      }
      float* out = g.y + m * g.yStride + b * blockColumns;
      for (int c = 0; c < blockColumns; c++) out[c] = sums[c];
    }
  }
}

}  // namespace cpu
