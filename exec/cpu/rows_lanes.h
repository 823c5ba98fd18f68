// The kernels of rows.h over lanes. Included by lanes_*.cpp only.
#pragma once

#include <math.h>

#include "lanes.h"
#include "rows.h"

namespace cpu {
namespace {

// Calls body(i, count) for steps of 16 of width: i from 0, count 16 and less for the last.
template <class F>
LANES_INLINE void everyLanes(int64_t width, F body) {
  int64_t i = 0;
  for (; i + laneCount <= width; i += laneCount) body(i, int64_t(laneCount));
  if (i < width) body(i, width - i);
}

void zeroFrom(uint16_t* out, int64_t width, int64_t paddedWidth) {
  memset(out + width, 0, size_t(paddedWidth - width) * sizeof(uint16_t));
}

float inverseRoot(const float* x, float epsilon, int64_t width) {
  Lanes squares = {};
  everyLanes(width, [&](int64_t i, int64_t count) {
    Lanes v = loadPart(x + i, count);
    squares = multiplyAdd(v, v, squares);
  });
  return 1 / sqrtf(sumOf(squares) / float(width) + epsilon);
}

void addRow(float* x, const float* bias, int64_t width) {
  everyLanes(width, [&](int64_t i, int64_t count) {
    storePart(x + i, loadPart(x + i, count) + loadPart(bias + i, count), count);
  });
}

void normRow(float* x, const float* delta, const float* weight, float epsilon, int64_t width, uint16_t* out,
             int64_t paddedWidth) {
  if (delta) addRow(x, delta, width);
  Lanes scale = spread(inverseRoot(x, epsilon, width));
  everyLanes(width, [&](int64_t i, int64_t count) {
    storeHalves(out + i, loadPart(x + i, count) * scale * loadPart(weight + i, count), count);
  });
  zeroFrom(out, width, paddedWidth);
}

void swigluRow(const float* gate, const float* up, int64_t width, uint16_t* out, int64_t paddedWidth) {
  everyLanes(width, [&](int64_t i, int64_t count) {
    Lanes g = loadPart(gate + i, count);
    storeHalves(out + i, g / (exponential(-g) + 1.0f) * loadPart(up + i, count), count);
  });
  zeroFrom(out, width, paddedWidth);
}

void rotateHead(float* x, const float* weight, float epsilon, const float* cosines, const float* sines,
                int64_t dim) {
  const int64_t half = dim / 2;
  Lanes scale = spread(weight ? inverseRoot(x, epsilon, dim) : 1.0f);
  everyLanes(half, [&](int64_t i, int64_t count) {
    Lanes first = loadPart(x + i, count), second = loadPart(x + half + i, count);
    if (weight) {
      first = first * scale * loadPart(weight + i, count);
      second = second * scale * loadPart(weight + half + i, count);
    }
    Lanes cosine = loadPart(cosines + i, count), sine = loadPart(sines + i, count);
    storePart(x + i, multiplyAdd(first, cosine, -(second * sine)), count);
    storePart(x + half + i, multiplyAdd(second, cosine, first * sine), count);
  });
}

void roundRow(const float* x, int64_t width, uint16_t* out, int64_t paddedWidth) {
  everyLanes(width, [&](int64_t i, int64_t count) { storeHalves(out + i, loadPart(x + i, count), count); });
  zeroFrom(out, width, paddedWidth);
}

constexpr RowKernels rowKernels = {normRow, swigluRow, rotateHead, roundRow, addRow};

}  // namespace
}  // namespace cpu
