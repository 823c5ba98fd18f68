// What routers do to numbers between their products.
#pragma once

#include <stdint.h>

#include "paths.h"

namespace cpu {

// Counts are multiples of 16. A NaN makes what depends on it NaN.
struct RouterKernels {
  // out = x rounded to bf16, then zeros up to padded.
  void (*round)(const float* x, int64_t width, uint16_t* out, int64_t padded);

  // out = x + bias.
  void (*add)(const float* x, const float* bias, int64_t count, float* out);

  // total += x + bias.
  void (*accumulate)(const float* x, const float* bias, int64_t count, float* total);

  // out = x + bias, rounded to bf16.
  void (*addRounded)(const float* x, const float* bias, int64_t count, uint16_t* out);

  // x = max(x + bias, 0).
  void (*relu)(float* x, const float* bias, int64_t count);

  // out = gelu(x + bias), a number times the normal law's mass below it, rounded to bf16. That is the exact
  // form, by erf, with a relative error of at most 1e-5 before rounding; what is below 1e-30 may become 0.
  void (*gelu)(const float* x, const float* bias, int64_t count, uint16_t* out);

  // out = (x - mean) / sqrt(variance + layerNormEpsilon) * weight + bias.
  void (*layerNorm)(const float* x, const float* weight, const float* bias, int64_t width, float* out);

  // The sum of x * w.
  float (*dot)(const float* x, const float* w, int64_t width);
};

// That of PyTorch's LayerNorm.
constexpr float layerNormEpsilon = 1e-5f;

// The kernels of an available path.
const RouterKernels& routerKernels(Path path);

extern const RouterKernels routerKernelsPlain;
#if defined(__x86_64__)
extern const RouterKernels routerKernelsAvx2;
extern const RouterKernels routerKernelsAvx512;
#endif

}  // namespace cpu
