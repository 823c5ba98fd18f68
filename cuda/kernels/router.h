// What the networks that judge a token do to rows between their products; exec/native/native.h has their
// formulas.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "../../exec/native/native.h"

namespace cuda {

// R2R: joined[row] = [hidden, embedding of the sampled token, ...], and the largest logits rounded to bf16.
struct RouterInputs {
  const uint16_t* hidden;  // [rows][hiddenStride], after the last norm
  int64_t hiddenStride, width;
  const uint16_t* embedding;  // [vocab][embeddingStride]
  int64_t embeddingStride;
  const tr_result* results;  // [rows]; a row without a token takes token 0's
  const float* top;          // [rows][topCount]
  int64_t topCount;
  uint16_t* joined;  // [rows][joinedStride]: the first 2 * width are filled, and zeros from 3 * width on
  int64_t joinedStride;
  uint16_t* logits;  // [rows][logitsStride], zeros behind
  int64_t logitsStride;
};
cudaError_t routerInputs(const RouterInputs& r, int64_t rows, cudaStream_t stream);

// out = f(sums + bias), rounded to bf16: f is gelu (x times the normal law's mass below it), or nothing; and
// zeros from width to outWidth.
struct RouterRound {
  const float* sums;  // [rows][sumsStride]
  int64_t sumsStride;
  const float* bias;
  int64_t width;
  bool gelu;
  uint16_t* out;  // [rows][outStride]
  int64_t outStride, outWidth;
};
cudaError_t routerRound(const RouterRound& r, int64_t rows, cudaStream_t stream);

// residual = sums + bias, or plus what it was if it is not the first; then LayerNorm: out = (residual - mean)
// / sqrt(variance + 1e-5) * weight + normBias, rounded to bf16, and zeros up to outStride. If out is null,
// results' score = sigmoid(that * scoreWeight + scoreBias) instead, where a row is sound.
struct RouterNorm {
  const float* sums;
  int64_t sumsStride;
  const float* bias;
  bool first;
  float* residual;  // [rows][residualStride]
  int64_t residualStride, width;
  const float *weight, *normBias;
  uint16_t* out;
  int64_t outStride;
  const float *scoreWeight, *scoreBias;
  tr_result* results;
};
cudaError_t routerNorm(const RouterNorm& r, int64_t rows, cudaStream_t stream);

// score = sigmoid(x * weight + bias), where a row is sound. x: relu(sums + sumsBias) if sums is not null
// (CITER), else hidden (Co-LLM); bias may be null.
struct RouterScore {
  const uint16_t* hidden;
  int64_t hiddenStride;
  const float* sums;
  int64_t sumsStride;
  const float* sumsBias;
  int64_t width;
  const float *weight, *bias;
  tr_result* results;
};
cudaError_t routerScore(const RouterScore& r, int64_t rows, cudaStream_t stream);

// Bounds: of a score against double, and of gelu before it is rounded, relative to the largest term.
constexpr double scoreTolerance = 2e-6, geluTolerance = 2e-6;

// The references, of one row, in double, on the host.
double geluReference(double x);
void layerNormReference(const double* x, const float* weight, const float* bias, int64_t width, double* out);

}  // namespace cuda
