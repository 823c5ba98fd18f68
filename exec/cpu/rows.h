// What a transformer does to one row between its matrix products.
#pragma once

#include <stdint.h>

#include "packed.h"

namespace cpu {

// Kernels that write bf16 take the width of the row and the padded width of the activations, and fill the
// rest with zeros: the form that products read. A NaN in a row makes that row NaN (all of it where a sum
// runs over it).
struct RowKernels {
  // x += delta (null: nothing), then out = x / sqrt(mean(x * x) + epsilon) * weight, rounded to bf16.
  void (*norm)(float* x, const float* delta, const float* weight, float epsilon, int64_t width, uint16_t* out,
               int64_t paddedWidth);

  // out = gate / (1 + e^-gate) * up, rounded to bf16.
  void (*swiglu)(const float* gate, const float* up, int64_t width, uint16_t* out, int64_t paddedWidth);

  // Of one head, in place: x = x / sqrt(mean(x * x) + epsilon) * weight unless weight is null, then the
  // rotation of pairs i and i + dim / 2 by the angles whose cosines and sines are given, dim / 2 of each.
  void (*rotate)(float* x, const float* weight, float epsilon, const float* cosines, const float* sines,
                 int64_t dim);

  // out = x rounded to bf16.
  void (*round)(const float* x, int64_t width, uint16_t* out, int64_t paddedWidth);

  // x += bias.
  void (*add)(float* x, const float* bias, int64_t width);
};

// Bounds against the references below. The first is of results in bf16, relative: half a unit in the last
// place, 2^-8, and a little for the arithmetic before it; the second is of results in fp32, times the
// largest term.
constexpr double roundedTolerance = 1.01 / 256, rotateTolerance = 2e-6;

void normReference(double* x, const float* delta, const float* weight, double epsilon, int64_t width,
                   double* out);
void swigluReference(const float* gate, const float* up, int64_t width, double* out);
void rotateReference(const float* x, const float* weight, double epsilon, const float* cosines,
                     const float* sines, int64_t dim, double* out);

// The weights of one output column of a packed matrix as float32, depth of them: a row of the embedding
// where the output head is tied to it, so that both share one copy.
void gatherColumn(const Packed& weights, int64_t column, float* out);

}  // namespace cpu
