#include "attention.h"
#include "common.cuh"

namespace cuda {

namespace {

constexpr int rotateWarps = 4;
constexpr int pairsMax = int(headDimMax) / 2 / warpThreads;  // that a lane has

// One warp makes one query head, or a key and its value.
__global__ void __launch_bounds__(rotateWarps* warpThreads) rotateKernel(Rotate r) {
  const int lane = int(threadIdx.x) % warpThreads;
  const int64_t row = blockIdx.x, head = int64_t(blockIdx.y) * rotateWarps + threadIdx.x / warpThreads;
  const int64_t stride = r.kv.headStride, half = r.headDim / 2;
  if (head >= r.heads + r.kv.kvHeads) return;
  const bool query = head < r.heads;
  const float* x = r.qkv + row * r.qkvStride + head * stride;
  const float* bias = r.bias ? r.bias + head * stride : nullptr;
  const float* weight = query ? r.qNorm : r.kNorm;
  float first[pairsMax], second[pairsMax], squares = 0;
#pragma unroll
  for (int j = 0; j < pairsMax; j++) {
    const int64_t i = lane + j * warpThreads;
    first[j] = i < half ? x[i] : 0;
    second[j] = i < half ? x[half + i] : 0;
    if (bias && i < half) {
      first[j] += bias[i];
      second[j] += bias[half + i];
    }
    squares += first[j] * first[j] + second[j] * second[j];
  }
  const float scale = weight ? 1 / sqrtf(acrossWarp(squares, Sum()) / float(r.headDim) + r.epsilon) : 1.0f;
  const float *cosines = r.cosines + row * half, *sines = r.sines + row * half;
  const int64_t position = r.positions[row], token = position % r.kv.pageTokens;
  const int64_t page = r.tables[r.slots[row] * r.tablePages + position / r.kv.pageTokens];
  const int64_t kvHead = head - r.heads;
  float unsound = 0;  // 0, or NaN
  if (!query) {
    const float* value = x + r.kv.kvHeads * stride;
    for (int64_t d = lane; d < stride; d += warpThreads) {
      float v = d < r.headDim ? value[d] : 0;
      if (bias && d < r.headDim) v += bias[r.kv.kvHeads * stride + d];
      r.kv.values[r.kv.valueAt(page, kvHead, token, d)] = narrow(v);
      unsound += widen(narrow(v)) - widen(narrow(v));
    }
    unsound = acrossWarp(unsound, Sum());
  }
  auto put = [&](int64_t d, float v) {
    if (query)
      r.q[row * r.heads * stride + head * stride + d] = narrow(v);
    else
      r.kv.keys[r.kv.keyAt(page, kvHead, token, d)] = narrow(v + unsound);
  };
#pragma unroll
  for (int j = 0; j < pairsMax; j++) {
    const int64_t i = lane + j * warpThreads;
    if (i >= half) continue;
    const float a = weight ? first[j] * scale * weight[i] : first[j];
    const float b = weight ? second[j] * scale * weight[half + i] : second[j];
    put(i, a * cosines[i] - b * sines[i]);
    put(half + i, b * cosines[i] + a * sines[i]);
  }
  for (int64_t d = r.headDim + lane; d < stride; d += warpThreads) put(d, 0);
}

}  // namespace

cudaError_t rotate(const Rotate& r, int64_t rows, cudaStream_t stream) {
  const unsigned blocks = unsigned((r.heads + r.kv.kvHeads + rotateWarps - 1) / rotateWarps);
  return launch(rotateKernel, dim3(unsigned(rows), blocks), rotateWarps * warpThreads, stream, r);
}

void rotateReference(const float* x, const float* bias, const float* weight, double epsilon,
                     const float* cosines, const float* sines, int64_t dim, double* out) {
  auto sum = [&](int64_t i) { return double(x[i]) + (bias ? double(bias[i]) : 0); };
  double squares = 0;
  for (int64_t i = 0; i < dim; i++) squares += sum(i) * sum(i);
  const double scale = weight ? 1 / sqrt(squares / double(dim) + epsilon) : 1;
  auto normed = [&](int64_t i) { return sum(i) * scale * (weight ? double(weight[i]) : 1); };
  for (int64_t i = 0; i < dim / 2; i++) {
    const double first = normed(i), second = normed(i + dim / 2);
    out[i] = first * double(cosines[i]) - second * double(sines[i]);
    out[i + dim / 2] = second * double(cosines[i]) + first * double(sines[i]);
  }
}

}  // namespace cuda
