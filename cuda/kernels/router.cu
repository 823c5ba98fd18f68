#include "router.h"

#include "common.cuh"

namespace cuda {

namespace {

constexpr int routerThreads = 256;
constexpr float layerNormEpsilon = 1e-5f;  // PyTorch's

struct RouterShared {
  float sums[routerThreads / warpThreads];
};

__global__ void routerInputsKernel(RouterInputs r) {
  const int64_t row = blockIdx.x;
  const int32_t token = r.results[row].token;
  const uint16_t* hidden = r.hidden + row * r.hiddenStride;
  const uint16_t* embedding = r.embedding + (token < 0 ? 0 : token) * r.embeddingStride;
  uint16_t* joined = r.joined + row * r.joinedStride;
  for (int64_t i = threadIdx.x; i < r.width; i += blockDim.x) {
    joined[i] = hidden[i];
    joined[r.width + i] = embedding[i];
  }
  for (int64_t i = 3 * r.width + threadIdx.x; i < r.joinedStride; i += blockDim.x) joined[i] = 0;
  for (int64_t i = threadIdx.x; i < r.logitsStride; i += blockDim.x) {
    r.logits[row * r.logitsStride + i] = i < r.topCount ? narrow(r.top[row * r.topCount + i]) : uint16_t(0);
  }
}

__global__ void routerRoundKernel(RouterRound r) {
  const int64_t row = blockIdx.y, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= r.outWidth) return;
  float x = 0;
  if (i < r.width) x = r.sums[row * r.sumsStride + i] + r.bias[i];
  if (r.gelu) x *= 0.5f * erfcf(x * -0.70710678f);
  r.out[row * r.outStride + i] = narrow(x);
}

__device__ void putScore(tr_result& result, float sum) {
  if (result.finite) result.score = 1 / (1 + exp(-double(sum)));
}

__global__ void __launch_bounds__(routerThreads) routerNormKernel(RouterNorm r) {
  RouterShared& shared = sharedMemory<RouterShared>();
  const int64_t row = blockIdx.x;
  const float* sums = r.sums + row * r.sumsStride;
  float* x = r.residual + row * r.residualStride;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < r.width; i += blockDim.x) {
    x[i] = sums[i] + r.bias[i] + (r.first ? 0 : x[i]);
    sum += x[i];
  }
  const float mean = acrossBlock(sum, Sum(), shared.sums) / float(r.width);
  float squares = 0;
  for (int64_t i = threadIdx.x; i < r.width; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  const float variance = acrossBlock(squares, Sum(), shared.sums) / float(r.width);
  const float scale = 1 / sqrtf(variance + layerNormEpsilon);
  auto normed = [&](int64_t i) { return (x[i] - mean) * scale * r.weight[i] + r.normBias[i]; };
  if (r.out) {
    for (int64_t i = threadIdx.x; i < r.outStride; i += blockDim.x) {
      r.out[row * r.outStride + i] = i < r.width ? narrow(normed(i)) : uint16_t(0);
    }
    return;
  }
  float product = 0;
  for (int64_t i = threadIdx.x; i < r.width; i += blockDim.x) product += normed(i) * r.scoreWeight[i];
  product = acrossBlock(product, Sum(), shared.sums);
  if (threadIdx.x == 0) putScore(r.results[row], product + r.scoreBias[0]);
}

__global__ void __launch_bounds__(routerThreads) routerScoreKernel(RouterScore r) {
  RouterShared& shared = sharedMemory<RouterShared>();
  const int64_t row = blockIdx.x;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < r.width; i += blockDim.x) {
    float x;
    if (r.sums) {
      x = r.sums[row * r.sumsStride + i] + r.sumsBias[i];
      x = x < 0 ? 0 : x;  // a NaN stays
    } else {
      x = widen(r.hidden[row * r.hiddenStride + i]);
    }
    sum += x * r.weight[i];
  }
  sum = acrossBlock(sum, Sum(), shared.sums);
  if (threadIdx.x == 0) putScore(r.results[row], r.bias ? sum + r.bias[0] : sum);
}

}  // namespace

cudaError_t routerInputs(const RouterInputs& r, int64_t rows, cudaStream_t stream) {
  return launch(routerInputsKernel, dim3(unsigned(rows)), threadsFor(r.width, routerThreads), stream, r);
}

cudaError_t routerRound(const RouterRound& r, int64_t rows, cudaStream_t stream) {
  const unsigned blocks = unsigned((r.outWidth + routerThreads - 1) / routerThreads);
  return launch(routerRoundKernel, dim3(blocks, unsigned(rows)), routerThreads, stream, r);
}

cudaError_t routerNorm(const RouterNorm& r, int64_t rows, cudaStream_t stream) {
  return launch(routerNormKernel, dim3(unsigned(rows)), threadsFor(r.width, routerThreads), stream, r);
}

cudaError_t routerScore(const RouterScore& r, int64_t rows, cudaStream_t stream) {
  return launch(routerScoreKernel, dim3(unsigned(rows)), threadsFor(r.width, routerThreads), stream, r);
}

double geluReference(double x) { return x * 0.5 * erfc(-x / sqrt(2.0)); }

void layerNormReference(const double* x, const float* weight, const float* bias, int64_t width, double* out) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < width; i++) mean += x[i] / double(width);
  for (int64_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean) / double(width);
  const double scale = 1 / sqrt(variance + double(layerNormEpsilon));
  for (int64_t i = 0; i < width; i++) out[i] = (x[i] - mean) * scale * double(weight[i]) + double(bias[i]);
}

}  // namespace cuda
