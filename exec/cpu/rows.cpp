#include "rows.h"

#include <math.h>

#include "bf16.h"

namespace cpu {

void normReference(double* x, const float* delta, const float* weight, double epsilon, int64_t width,
                   double* out) {
  double squares = 0;
  for (int64_t i = 0; i < width; i++) {
    if (delta) x[i] += double(delta[i]);
    squares += x[i] * x[i];
  }
  double scale = 1 / sqrt(squares / double(width) + epsilon);
  for (int64_t i = 0; i < width; i++) out[i] = x[i] * scale * double(weight[i]);
}

void swigluReference(const float* gate, const float* up, int64_t width, double* out) {
  for (int64_t i = 0; i < width; i++) out[i] = double(gate[i]) / (1 + exp(-double(gate[i]))) * double(up[i]);
}

void rotateReference(const float* x, const float* weight, double epsilon, const float* cosines,
                     const float* sines, int64_t dim, double* out) {
  double squares = 0;
  for (int64_t i = 0; i < dim; i++) squares += double(x[i]) * double(x[i]);
  double scale = weight ? 1 / sqrt(squares / double(dim) + epsilon) : 1;
  auto normed = [&](int64_t i) { return double(x[i]) * scale * (weight ? double(weight[i]) : 1); };
  for (int64_t i = 0; i < dim / 2; i++) {
    double first = normed(i), second = normed(i + dim / 2);
    out[i] = first * double(cosines[i]) - second * double(sines[i]);
    out[i + dim / 2] = second * double(cosines[i]) + first * double(sines[i]);
  }
}

void gatherColumn(const Packed& weights, int64_t column, float* out) {
  for (int64_t k = 0; k < weights.depth; k++) out[k] = widen(weights.tiles[weights.offset(column, k)]);
}

}  // namespace cpu
