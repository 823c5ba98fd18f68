// Statistics of a row of logits.
#pragma once

#include <float.h>

#include "common.cuh"
#include "logits.h"

namespace cuda {

constexpr int statisticsThreads = 128;

// The largest of some logits, the first of equals, and the largest of the others.
struct Best {
  float max, second;
  int32_t first;
};

struct Better {
  __device__ Best operator()(const Best& a, const Best& b) const {
    const bool left = a.max > b.max || (a.max == b.max && a.first < b.first);
    const Best &winner = left ? a : b, &loser = left ? b : a;
    return {winner.max, fmaxf(winner.second, loser.max), winner.first};
  }
};

// Of a warp. The parts of a Best cross one by one.
__device__ __forceinline__ Best bestOfWarp(Best best) {
  for (int mask = warpThreads / 2; mask > 0; mask /= 2) {
    const Best other = {__shfl_xor_sync(wholeWarp, best.max, mask),
                        __shfl_xor_sync(wholeWarp, best.second, mask),
                        __shfl_xor_sync(wholeWarp, best.first, mask)};
    best = Better()(best, other);
  }
  return best;
}

// Of a block; every thread gets it.
__device__ __forceinline__ Best bestOfBlock(Best best, Best* scratch) {
  best = bestOfWarp(best);
  __syncthreads();
  if (threadIdx.x % warpThreads == 0) scratch[threadIdx.x / warpThreads] = best;
  __syncthreads();
  Best all = scratch[0];
  for (int i = 1; i < int(blockDim.x) / warpThreads; i++) all = Better()(all, scratch[i]);
  return all;
}

struct StatisticsShared {
  Best best[statisticsThreads / warpThreads];
  double sums[statisticsThreads / warpThreads];
  int32_t unsound[statisticsThreads / warpThreads];
};

static __global__ void __launch_bounds__(statisticsThreads) statisticsKernel(Heads h) {
  StatisticsShared& shared = sharedMemory<StatisticsShared>();
  const int64_t row = blockIdx.y, begin = blockIdx.x * chunkLogits;
  const int64_t end = begin + chunkLogits < h.vocab ? begin + chunkLogits : h.vocab;
  const float* z = h.logits + row * h.stride;
  Best best = {-INFINITY, -INFINITY, INT32_MAX};
  int32_t unsound = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += statisticsThreads) {
    unsound |= !(z[i] < INFINITY);
    best = Better()(best, {z[i], -INFINITY, int32_t(i)});
  }
  best = bestOfBlock(best, shared.best);
  unsound = acrossBlock(unsound, Sum(), shared.unsound);
  double sum = 0, weighted = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += statisticsThreads) {
    if (!(z[i] > -INFINITY)) continue;
    const float below = z[i] - best.max, power = expf(below);
    sum += double(power);
    weighted += double(power) * double(below);
  }
  sum = acrossBlock(sum, Sum(), shared.sums);
  weighted = acrossBlock(weighted, Sum(), shared.sums);
  if (threadIdx.x != 0) return;
  h.chunks[row * gridDim.x + blockIdx.x] = {sum, weighted, best.max, best.second, best.first, unsound == 0};
}

// Of a whole row.
struct RowStatistics {
  Best best;
  double sum, weighted;
  bool finite;
};

// Puts chunks together, in order; called by one thread.
__device__ inline RowStatistics joinChunks(const ChunkStatistics* chunks, int64_t count) {
  RowStatistics s = {{-INFINITY, -INFINITY, INT32_MAX}, 0, 0, true};
  for (int64_t i = 0; i < count; i++) {
    s.best = Better()(s.best, {chunks[i].max, chunks[i].second, chunks[i].first});
    s.finite = s.finite && chunks[i].finite;
  }
  s.finite = s.finite && s.best.max > -INFINITY;
  for (int64_t i = 0; s.finite && i < count; i++) {
    if (chunks[i].max == -INFINITY) continue;
    const double below = double(chunks[i].max) - double(s.best.max), factor = exp(below);
    s.sum += factor * chunks[i].sum;
    s.weighted += factor * (chunks[i].weighted + below * chunks[i].sum);
  }
  return s;
}

// Everything about a sound row but for its token and its lists.
__host__ __device__ inline tr_result resultOf(double max, double second, double sum, double weighted,
                                              int64_t vocab) {
  const double logSum = log(sum);
  double entropy = vocab > 1 ? (logSum - weighted / sum) / log(double(vocab)) : 0;
  entropy = entropy < 0 ? 0 : entropy > 1 ? 1 : entropy;
  const double top = 1 / sum, next = second == -INFINITY ? 0 : exp(second - max) / sum;
  tr_result r;
  r.token = -1;
  r.finite = 1;
  r.log_probability = NAN;
  r.top_probability = float(top);
  r.margin = float(top - next);
  r.entropy = float(entropy);
  r.log_sum_exp = float(max + logSum);
  r.top = 0;
  r.score = double(NAN);
  return r;
}

// A row of which nothing but finite is sound.
__host__ __device__ inline tr_result unsoundResult() {
  const float nan = NAN;
  return {-1, 0, nan, nan, nan, nan, nan, 0, double(nan)};
}

}  // namespace cuda
