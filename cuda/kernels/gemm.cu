#include "common.cuh"
#include "gemm.h"

namespace cuda {

namespace {

constexpr int skinnyWarps = 8;  // at most: a block has no more of them than chunks
constexpr int chunkDepth = 32;  // inputs that a warp takes at a time: two tiles

template <int eights>
struct SkinnyShared {
  float sums[skinnyWarps][eights][8][columnStep];  // [warp][rows / 8][row][column]
};

// One block makes 16 columns for eights * 8 rows: its warps share out the depth and join their sums in one
// order. Weights are the left operand, 16 of their rows a tile, and go from memory to registers and nowhere
// else. The order of the depth within a chunk is free, as long as both operands have the same: a lane takes
// eight neighbours of each row, in one load.
template <int eights>
__global__ void __launch_bounds__(skinnyWarps* warpThreads, 4) skinnyKernel(Product p, int64_t rows) {
  SkinnyShared<eights>& shared = sharedMemory<SkinnyShared<eights>>();
  const int warp = int(threadIdx.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  const int group = lane / 4, pair = lane % 4, warps = int(blockDim.x) / warpThreads;
  const int64_t column = int64_t(blockIdx.x) * columnStep, row = int64_t(blockIdx.y) * (eights * 8);
  const int64_t depth = (p.matrix.depth + depthStep - 1) / depthStep * depthStep;
  const uint16_t* upper = p.matrix.weights + (column + group) * depth + 8 * pair;
  const uint16_t* lower = upper + 8 * depth;
  const uint16_t* x = p.x + (row + group) * p.xStride + 8 * pair;
  float sums[eights][4] = {};
#pragma unroll 4
  for (int64_t k = warp * chunkDepth; k < depth; k += warps * chunkDepth) {
    const uint4 first = loadOnce(upper + k), second = loadOnce(lower + k);
    const uint32_t near[4] = {first.x, second.x, first.y, second.y};
    const uint32_t far[4] = {first.z, second.z, first.w, second.w};
#pragma unroll
    for (int i = 0; i < eights; i++) {
      const uint4 inputs = loadFour(x + i * 8 * p.xStride + k);
      const uint32_t nearInputs[2] = {inputs.x, inputs.y}, farInputs[2] = {inputs.z, inputs.w};
      multiplyTiles(sums[i], near, nearInputs);
      multiplyTiles(sums[i], far, farInputs);
    }
  }
#pragma unroll
  for (int i = 0; i < eights; i++) {
    float (&out)[8][columnStep] = shared.sums[warp][i];
    out[2 * pair][group] = sums[i][0];
    out[2 * pair + 1][group] = sums[i][1];
    out[2 * pair][group + 8] = sums[i][2];
    out[2 * pair + 1][group + 8] = sums[i][3];
  }
  __syncthreads();
  const int64_t left = rows - row;
  for (int i = int(threadIdx.x); i < eights * 8 * columnStep; i += int(blockDim.x)) {
    const int m = i / columnStep, n = i % columnStep;
    if (m >= left) break;
    float sum = 0;
    for (int w = 0; w < warps; w++) sum += shared.sums[w][m / 8][m % 8][n];
    p.y[(row + m) * p.yStride + column + n] = sum;
  }
}

}  // namespace

cudaError_t multiplyFew(const Product& p, int64_t rows, cudaStream_t stream) {
  const unsigned columns = unsigned(paddedColumns(p.matrix.columns) / columnStep);
  const int64_t chunks = p.matrix.stride() / chunkDepth;
  const int threads = int(chunks < skinnyWarps ? chunks : skinnyWarps) * warpThreads;
  if (rows <= 8) return launch(skinnyKernel<1>, dim3(columns), threads, stream, p, rows);
  const unsigned sixteens = unsigned((rows + skinnyRows - 1) / skinnyRows);
  return launch(skinnyKernel<2>, dim3(columns, sixteens), threads, stream, p, rows);
}

void productReference(const uint16_t* x, const Matrix& matrix, double* y, double* magnitude) {
  for (int64_t n = 0; n < matrix.columns; n++) {
    y[n] = magnitude[n] = 0;
    for (int64_t k = 0; k < matrix.depth; k++) {
      const double term = double(widen(x[k])) * double(widen(matrix.weights[n * matrix.stride() + k]));
      y[n] += term;
      magnitude[n] += fabs(term);
    }
  }
}

}  // namespace cuda
