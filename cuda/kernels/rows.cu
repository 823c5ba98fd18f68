#include "common.cuh"
#include "rows.h"

namespace cuda {

namespace {

constexpr int rowThreads = 256;

__global__ void embedKernel(Embed e) {
  const int64_t row = blockIdx.x;
  const uint16_t* from = e.embedding + int64_t(e.tokens[row]) * e.embeddingStride;
  float* to = e.x + row * e.xStride;
  for (int64_t i = threadIdx.x; i < e.hidden; i += blockDim.x) to[i] = widen(from[i]);
  const double position = double(e.positions[row]);
  for (int64_t i = threadIdx.x; i < e.pairs; i += blockDim.x) {
    const double angle = position * e.frequencies[i];
    e.cosines[row * e.pairs + i] = float(cos(angle) * e.factor);
    e.sines[row * e.pairs + i] = float(sin(angle) * e.factor);
  }
}

struct NormShared {
  float sums[rowThreads / warpThreads];
};

__global__ void __launch_bounds__(rowThreads) normKernel(Norm n) {
  NormShared& shared = sharedMemory<NormShared>();
  const int64_t row = blockIdx.x;
  const float* from = n.from + (n.source ? int64_t(n.source[row]) : row) * n.xStride;
  const float* delta = n.delta ? n.delta + row * n.xStride : nullptr;
  float* to = n.to + row * n.xStride;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n.width; i += blockDim.x) {
    float x = from[i];
    if (delta) x += n.bias ? delta[i] + n.bias[i] : delta[i];
    to[i] = x;
    squares += x * x;
  }
  const float scale = 1 / sqrtf(acrossBlock(squares, Sum(), shared.sums) / float(n.width) + n.epsilon);
  uint16_t* out = n.out + row * n.outStride;
  for (int64_t i = threadIdx.x; i < n.outStride; i += blockDim.x) {
    out[i] = i < n.width ? narrow(to[i] * scale * n.weight[i]) : uint16_t(0);
  }
}

__global__ void swigluKernel(SwiGLU s) {
  const int64_t row = blockIdx.y, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.outStride) return;
  uint16_t* out = s.out + row * s.outStride + i;
  if (i >= s.width) {
    *out = 0;
    return;
  }
  const float* gates = s.gateUp + row * s.gateUpStride;
  const float gate = s.bias ? gates[i] + s.bias[i] : gates[i];
  const float up = s.bias ? gates[s.width + i] + s.bias[s.width + i] : gates[s.width + i];
  *out = narrow(gate / (1 + expf(-gate)) * up);
}

}  // namespace

cudaError_t embed(const Embed& e, int64_t rows, cudaStream_t stream) {
  return launch(embedKernel, dim3(unsigned(rows)), threadsFor(e.hidden, rowThreads), stream, e);
}

cudaError_t norm(const Norm& n, int64_t rows, cudaStream_t stream) {
  return launch(normKernel, dim3(unsigned(rows)), threadsFor(n.width, rowThreads), stream, n);
}

cudaError_t swiglu(const SwiGLU& s, int64_t rows, cudaStream_t stream) {
  const int threads = threadsFor(4 * s.outStride, rowThreads);
  const unsigned blocks = unsigned((s.outStride + threads - 1) / threads);
  return launch(swigluKernel, dim3(blocks, unsigned(rows)), threads, stream, s);
}

void normReference(const float* from, const float* delta, const float* bias, const float* weight,
                   double epsilon, int64_t width, double* to, double* out) {
  double squares = 0;
  for (int64_t i = 0; i < width; i++) {
    to[i] = double(from[i]);
    if (delta) to[i] += double(delta[i]) + (bias ? double(bias[i]) : 0);
    squares += to[i] * to[i];
  }
  const double scale = 1 / sqrt(squares / double(width) + epsilon);
  for (int64_t i = 0; i < width; i++) out[i] = to[i] * scale * double(weight[i]);
}

void swigluReference(const float* gate, const float* up, int64_t width, double* out) {
  for (int64_t i = 0; i < width; i++) out[i] = double(gate[i]) / (1 + exp(-double(gate[i]))) * double(up[i]);
}

}  // namespace cuda
