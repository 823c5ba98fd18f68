// The kernels of router_kernels.h over lanes. Included by router_plain.cpp and the like only.
#pragma once

#include <math.h>

#include "lanes.h"
#include "router_kernels.h"
#include "rows_lanes.h"

namespace cpu {
namespace {

void addBias(const float* x, const float* bias, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += laneCount) store(out + i, load(x + i) + load(bias + i));
}

void accumulate(const float* x, const float* bias, int64_t count, float* total) {
  for (int64_t i = 0; i < count; i += laneCount) {
    store(total + i, load(total + i) + (load(x + i) + load(bias + i)));
  }
}

void addRounded(const float* x, const float* bias, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; i += laneCount) {
    storeHalves(out + i, load(x + i) + load(bias + i), laneCount);
  }
}

void relu(float* x, const float* bias, int64_t count) {
  for (int64_t i = 0; i < count; i += laneCount) {
    Lanes v = load(x + i) + load(bias + i);
    store(x + i, v < Lanes{} ? Lanes{} : v);
  }
}

// The normal law's mass above |x|, erfc(|x| / sqrt(2)) / 2, with a relative error of at most 1e-5; 0 from 13
// on. The polynomial is that of Press and others, Numerical Recipes, section 6.2 (erfcc).
LANES_INLINE Lanes upperTail(Lanes x) {
  constexpr float coefficients[] = {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                                    0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
  Lanes z = (x < Lanes{} ? -x : x) * 0.70710678f;
  Lanes t = 1.0f / (z * 0.5f + 1.0f);
  Lanes p = spread(0.17087277f);
  for (float c : coefficients) p = multiplyAdd(p, t, spread(c));
  return t * 0.5f * exponential(multiplyAdd(-z, z, p));
}

void geluRounded(const float* x, const float* bias, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; i += laneCount) {
    Lanes v = load(x + i) + load(bias + i), tail = upperTail(v);
    storeHalves(out + i, v * (v < Lanes{} ? tail : 1.0f - tail), laneCount);
  }
}

void layerNorm(const float* x, const float* weight, const float* bias, int64_t width, float* out) {
  Lanes sums = {};
  everyLanes(width, [&](int64_t i, int64_t count) { sums += loadPart(x + i, count); });
  const Lanes mean = spread(sumOf(sums) / float(width));
  Lanes squares = {};
  everyLanes(width, [&](int64_t i, int64_t count) {
    storePart(out + i, loadPart(x + i, count) - mean, count);
    Lanes off = loadPart(out + i, count);
    squares = multiplyAdd(off, off, squares);
  });
  const Lanes scale = spread(1 / sqrtf(sumOf(squares) / float(width) + layerNormEpsilon));
  everyLanes(width, [&](int64_t i, int64_t count) {
    Lanes off = loadPart(out + i, count);
    storePart(out + i, off * scale * loadPart(weight + i, count) + loadPart(bias + i, count), count);
  });
}

float dotRow(const float* x, const float* w, int64_t width) {
  Lanes sums = {};
  everyLanes(width, [&](int64_t i, int64_t count) {
    sums = multiplyAdd(loadPart(x + i, count), loadPart(w + i, count), sums);
  });
  return sumOf(sums);
}

constexpr RouterKernels routerKernelsOfLanes = {roundRow, addBias, accumulate, addRounded, relu, geluRounded,
                                                layerNorm, dotRow};

}  // namespace
}  // namespace cpu
