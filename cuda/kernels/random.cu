#include "random.h"

#include "../../exec/native/halves.h"
#include "common.cuh"

namespace cuda {

namespace {

constexpr int fillThreads = 256;
constexpr int64_t fillBlocksMax = 1 << 15;

// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr uint64_t splitmix = 0x9e3779b97f4a7c15u;

__host__ __device__ __forceinline__ double sumAt(uint64_t state, int64_t i) {
  uint64_t z = state + splitmix * uint64_t(i + 1);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return double(int64_t((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48)) - 131070);
}

__global__ void fillKernel(Drawn d, Filled f) {
  const int64_t count = f.rows * f.columns, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    // Not fused: that would give other bits than the processor's.
    const uint16_t number = narrow(float(__dadd_rn(d.mean, __dmul_rn(d.scale, sumAt(d.state, i)))));
    const int64_t row = f.matrix ? i / f.columns : i, k = i % f.columns;
    const int64_t to = f.first + row / f.run * f.stride + row % f.run;
    if (f.matrix)
      f.matrix[to * f.matrixStride + k / f.columnRun * f.columnStride + k % f.columnRun] = number;
    else
      f.vector[to] = widen(number);
  }
}

}  // namespace

cudaError_t fillRandom(const Drawn& drawn, const Filled& filled, cudaStream_t stream) {
  const int64_t blocks = (filled.rows * filled.columns + fillThreads - 1) / fillThreads;
  const unsigned count = unsigned(blocks < fillBlocksMax ? blocks : fillBlocksMax);
  return launch(fillKernel, dim3(count), fillThreads, stream, drawn, filled);
}

uint16_t drawnReference(const Drawn& d, int64_t i) {
  volatile double product = d.scale * sumAt(d.state, i);
  return native::narrow(float(d.mean + product));
}

}  // namespace cuda
