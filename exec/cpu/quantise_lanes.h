// The kernels of quantise.h over lanes. Included by lanes_*.cpp only.
#pragma once

#include "lanes.h"
#include "quantise.h"
#include "rows_lanes.h"

namespace cpu {
namespace {

typedef int8_t Bytes __attribute__((vector_size(16)));

LANES_INLINE Lanes widened(const float* x, int64_t count) { return loadPart(x, count); }

LANES_INLINE Lanes widened(const uint16_t* x, int64_t count) {
  Halves h = {};
  memcpy(&h, x, size_t(count) * sizeof(uint16_t));
  return lanesOf(__builtin_convertvector(h, Words) << 16);
}

template <class T>
LANES_INLINE uint32_t largestMagnitude(const T* x, int64_t width) {
  Ints largest = {};
  everyLanes(width, [&](int64_t i, int64_t count) {
    Ints bits = reinterpret_cast<Ints>(wordsOf(widened(x + i, count)) & 0x7fffffffu);
    largest = bits > largest ? bits : largest;
  });
  int32_t most = 0;
  for (int i = 0; i < laneCount; i++) most = largest[i] > most ? largest[i] : most;
  return uint32_t(most);
}

// The inputs of one group, width of them and zeros up to padded.
template <class T>
LANES_INLINE void quantiseGroup(const T* x, int64_t width, int64_t padded, int8_t* values, RowGroup* group) {
  const Int8Scale s = int8ScaleOf(largestMagnitude(x, width));
  *group = {s.scale, 0};
  if (s.inverse == 0) {
    memset(values, 0, size_t(padded));
    return;
  }
  Ints sums = {};
  everyLanes(width, [&](int64_t i, int64_t count) {
    Lanes shifted = widened(x + i, count) * spread(s.inverse) + int8Rounder;
    Ints whole = reinterpret_cast<Ints>(wordsOf(shifted)) - int8RounderBits;
    sums += whole;
    Bytes bytes = __builtin_convertvector(whole, Bytes);
    memcpy(values + i, &bytes, size_t(count));
  });
  memset(values + width, 0, size_t(padded - width));
  int32_t sum = 0;
  for (int i = 0; i < laneCount; i++) sum += sums[i];
  group->offset = int8Zero * sum;
}

template <class T>
LANES_INLINE void quantiseRow(const PackedInt8& shape, const T* x, int8_t* values, RowGroup* groups) {
  for (int64_t group = 0; group < shape.groups; group++) {
    int64_t begin = group * shape.groupSteps * int8TileDepth, padded = shape.stepsOf(group) * int8TileDepth;
    int64_t width = shape.depth - begin < padded ? shape.depth - begin : padded;
    quantiseGroup(x + begin, width, padded, values + begin, groups + group);
  }
}

void quantiseHalves(const PackedInt8& shape, const uint16_t* x, int8_t* values, RowGroup* groups) {
  quantiseRow(shape, x, values, groups);
}

void quantiseFloats(const PackedInt8& shape, const float* x, int8_t* values, RowGroup* groups) {
  quantiseRow(shape, x, values, groups);
}

constexpr QuantiseKernels quantiseKernels = {quantiseHalves, quantiseFloats};

}  // namespace
}  // namespace cpu
