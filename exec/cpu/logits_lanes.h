// The kernels of logits.h over lanes. Included by lanes_*.cpp only.
#pragma once

#include <math.h>

#include "lanes.h"
#include "logits.h"

namespace cpu {
namespace {

// The first count of 16 logits, the rest -infinity.
LANES_INLINE Lanes loadLogits(const float* z, int64_t count) {
  if (count >= laneCount) return load(z);
  Lanes v = spread(-INFINITY);
  memcpy(&v, z, size_t(count) * sizeof(float));
  return v;
}

int64_t nextLogitAbove(const float* z, int64_t begin, int64_t end, float threshold) {
  int64_t i = begin;
  for (; i + laneCount <= end; i += laneCount) {
    if (maxOf(load(z + i) > threshold ? spread(1) : Lanes{}) > 0) break;
  }
  while (i < end && !(z[i] > threshold)) i++;
  return i;
}

// The largest logits of a chunk and where the first is.
LANES_INLINE void largest(const float* z, int64_t count, ChunkStatistics* out) {
  Lanes first = spread(-INFINITY), second = first;
  Ints unsound = {}, at = {};  // at: where the first of a lane was found
  for (int64_t i = 0; i < count; i += laneCount) {
    Lanes v = loadLogits(z + i, count - i);
    unsound |= ~(v < INFINITY);
    Ints larger = v > first;
    Lanes lesser = larger ? first : v;
    second = lesser > second ? lesser : second;
    at = larger ? int32_t(i) - Ints{} : at;
    first = larger ? v : first;
  }
  float a[laneCount], b[laneCount];
  store(a, first);
  store(b, second);
  int32_t any = 0;
  for (int i = 0; i < laneCount; i++) any |= unsound[i];
  out->finite = any ? 0 : 1;
  out->max = out->secondMax = -INFINITY;
  for (int i = 0; i < laneCount; i++) {
    if (a[i] > out->max) {
      out->secondMax = out->max > b[i] ? out->max : b[i];
      out->max = a[i];
    } else if (a[i] > out->secondMax) {
      out->secondMax = a[i];
    }
  }
  out->first = int32_t(count);
  for (int i = 0; i < laneCount; i++) {
    if (a[i] == out->max && at[i] + i < out->first) out->first = at[i] + i;
  }
}

void chunkStatistics(const float* z, int64_t count, ChunkStatistics* out) {
  out->sum = out->weighted = 0;
  largest(z, count, out);
  if (!out->finite || out->max == -INFINITY) return;
  Lanes sums = {}, weighted = {};
  for (int64_t i = 0; i < count; i += laneCount) {
    Lanes below = loadLogits(z + i, count - i) - out->max;
    Lanes power = exponential(below);
    sums += power;
    // A logit of -infinity has no weight, and 0 times infinity would be NaN.
    weighted = multiplyAdd(power, power > 0.0f ? below : Lanes{}, weighted);
  }
  out->sum = double(sumOf(sums));
  out->weighted = double(sumOf(weighted));
}

double chunkWeights(const float* z, int64_t count, float max, float scale, float* out) {
  Lanes sums = {};
  for (int64_t i = 0; i < count; i += laneCount) {
    Lanes power = exponential((loadLogits(z + i, count - i) - max) * scale);
    sums += power;
    storePart(out + i, power, count - i < laneCount ? count - i : laneCount);
  }
  return double(sumOf(sums));
}

constexpr LogitsKernels logitsKernels = {chunkStatistics, nextLogitAbove, chunkWeights};

}  // namespace
}  // namespace cpu
