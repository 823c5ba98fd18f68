// What a transformer does to one row between its matrix products. All pointers are of the device; each
// function adds launches to a stream.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

namespace cuda {

// Bound against the references below, relative: half a unit in the last place of bf16, 2^-8, and a little for
// the arithmetic before it.
constexpr double roundedTolerance = 1.01 / 256;

// The first of a step: x[row] = embedding[token], and the cosines and sines of the row's angles, position *
// frequency, times factor.
struct Embed {
  const int32_t *tokens, *positions;  // [rows]
  const uint16_t* embedding;          // [vocab][embeddingStride]
  int64_t embeddingStride, hidden;
  float* x;  // [rows][xStride]
  int64_t xStride;
  const double* frequencies;  // [pairs]
  int64_t pairs;
  double factor;
  float *cosines, *sines;  // [rows][pairs]
};
cudaError_t embed(const Embed& e, int64_t rows, cudaStream_t stream);

// to[row] = from[source[row]] + delta[row] + bias; out[row] = that / sqrt(mean of squares + epsilon) *
// weight, rounded to bf16, and zeros up to outStride. source null: row; delta and bias may be null. from and
// to may be the same if source is null.
struct Norm {
  const float* from;
  float* to;
  const int32_t* source;  // [rows]
  const float* delta;     // [rows][xStride]
  const float* bias;      // [width]
  int64_t xStride;
  const float* weight;
  float epsilon;
  int64_t width;
  uint16_t* out;
  int64_t outStride;
};
cudaError_t norm(const Norm& n, int64_t rows, cudaStream_t stream);

// out = gate / (1 + e^-gate) * up, rounded to bf16, and zeros up to outStride; both with a bias unless that
// is null: [2][width].
struct SwiGLU {
  const float* gateUp;  // [rows][gateUpStride]: gate, then up
  int64_t gateUpStride;
  const float* bias;
  int64_t width;
  uint16_t* out;
  int64_t outStride;
};
cudaError_t swiglu(const SwiGLU& s, int64_t rows, cudaStream_t stream);

// The references, of one row, in double, on the host.
void normReference(const float* from, const float* delta, const float* bias, const float* weight,
                   double epsilon, int64_t width, double* to, double* out);
void swigluReference(const float* gate, const float* up, int64_t width, double* out);

}  // namespace cuda
