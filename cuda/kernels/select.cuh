// The best tokens of a row, and draws from it, by one block.
#pragma once

#include "common.cuh"
#include "logits.h"

namespace cuda {

// A token and its logit in one number that orders as they do: the larger logit first, then the smaller token.
// 0 for what can not be drawn: a NaN or -infinity.
__device__ __forceinline__ uint64_t rankOf(float z, int64_t token) {
  if (!(z > -INFINITY)) return 0;
  uint32_t bits;
  z = z + 0.0f;  // -0 is 0
  memcpy(&bits, &z, sizeof bits);
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t(bits) << 32 | uint32_t(~uint32_t(token));
}

__device__ __forceinline__ int32_t tokenOf(uint64_t rank) { return int32_t(~uint32_t(rank)); }

constexpr int digitBits = 8, digits = 1 << digitBits;
constexpr int warpsMax = 32;

struct SelectShared {
  uint64_t ranks[topMax];
  double weights[topMax];
  int32_t counts[digits];
  int32_t integers[warpsMax];
  double doubles[warpsMax];
  uint64_t threshold;
  int64_t wanted;
  int32_t found, done;
  int32_t token;
};

// The rank of the n-th best token of a row of which n can be drawn, or less if that makes no difference: n
// tokens have that rank or a higher one. Digit by digit, from the highest.
__device__ inline uint64_t thresholdOf(const float* z, int64_t vocab, int64_t n, SelectShared& s) {
  __syncthreads();
  if (threadIdx.x == 0) {
    s.threshold = 0;
    s.wanted = n;
    s.done = 0;
  }
  for (int shift = 64 - digitBits; shift >= 0; shift -= digitBits) {
    for (int i = int(threadIdx.x); i < digits; i += int(blockDim.x)) s.counts[i] = 0;
    __syncthreads();
    if (s.done) break;
    const uint64_t above = shift + digitBits == 64 ? 0 : ~uint64_t(0) << (shift + digitBits);
    for (int64_t i = threadIdx.x; i < vocab; i += blockDim.x) {
      const uint64_t rank = rankOf(z[i], i);
      if (rank && (rank & above) == s.threshold) atomicAdd(&s.counts[rank >> shift & (digits - 1)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = digits - 1;
      for (; digit > 0 && s.counts[digit] < s.wanted; digit--) s.wanted -= s.counts[digit];
      s.threshold |= uint64_t(digit) << shift;
      s.done = s.counts[digit] == s.wanted;
    }
    __syncthreads();
  }
  return s.threshold;
}

// How many tokens of a row can be drawn.
__device__ inline int64_t drawableOf(const float* z, int64_t vocab, SelectShared& s) {
  int32_t count = 0;
  for (int64_t i = threadIdx.x; i < vocab; i += blockDim.x) count += z[i] > -INFINITY;
  return acrossBlock(count, Sum(), s.integers);
}

// Sorts s.ranks[0] to [size - 1], size a power of two, the highest first.
__device__ inline void sortRanks(int size, SelectShared& s) {
  for (int run = 2; run <= size; run *= 2) {
    for (int apart = run / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int i = int(threadIdx.x); i < size; i += int(blockDim.x)) {
        const int other = i ^ apart;
        if (other < i) continue;
        const uint64_t a = s.ranks[i], b = s.ranks[other];
        if ((i & run) == 0 ? a < b : a > b) {
          s.ranks[i] = b;
          s.ranks[other] = a;
        }
      }
    }
  }
  __syncthreads();
}

// Puts the n best tokens of a row into s.ranks, best first, and returns how many there are; n up to topMax.
__device__ inline int64_t selectTop(const float* z, int64_t vocab, int64_t n, SelectShared& s) {
  const int64_t drawable = drawableOf(z, vocab, s);
  if (n > drawable) n = drawable;
  if (n <= 0) return 0;
  const uint64_t threshold = thresholdOf(z, vocab, n, s);
  int size = 1;
  while (size < n) size *= 2;
  for (int i = int(threadIdx.x); i < size; i += int(blockDim.x)) s.ranks[i] = 0;
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < vocab; i += blockDim.x) {
    const uint64_t rank = rankOf(z[i], i);
    if (rank && rank >= threshold) s.ranks[atomicAdd(&s.found, 1)] = rank;
  }
  sortRanks(size, s);
  return n;
}

// A row at a temperature. Weights are against the largest logit.
struct Weighed {
  const float* z;
  int64_t vocab;
  float max, scale;

  __device__ double weight(int64_t token) const { return double(expf((z[token] - max) * scale)); }
};

// The weight of all tokens of a rank and above that have at least the least weight.
__device__ inline double massFrom(const Weighed& w, uint64_t rank, double least, SelectShared& s) {
  double mass = 0;
  for (int64_t i = threadIdx.x; i < w.vocab; i += blockDim.x) {
    const uint64_t here = rankOf(w.z[i], i);
    if (here == 0 || here < rank) continue;
    const double weight = w.weight(i);
    if (weight >= least) mass += weight;
  }
  return acrossBlock(mass, Sum(), s.doubles);
}

// Draws among all tokens with at least the least weight, in the order of tokens.
__device__ inline int32_t drawAmongAll(const Weighed& w, double least, double uniform, SelectShared& s) {
  // Each thread has a part of the tokens, one after another.
  const int64_t share = (w.vocab + blockDim.x - 1) / blockDim.x, begin = threadIdx.x * share;
  const int64_t end = begin + share < w.vocab ? begin + share : w.vocab;
  double mass = 0;
  int32_t last = -1;
  for (int64_t i = begin; i < end; i++) {
    if (!(w.z[i] > -INFINITY)) continue;
    const double weight = w.weight(i);
    if (weight <= 0 || weight < least) continue;
    mass += weight;
    last = int32_t(i);
  }
  __syncthreads();
  double* masses = s.weights;  // blockDim.x is at most topMax
  masses[threadIdx.x] = mass;
  last = acrossBlock(last, Largest(), s.integers);
  if (threadIdx.x == 0) s.token = last;
  __syncthreads();
  double before = 0, total = 0;
  for (int i = 0; i < int(blockDim.x); i++) {
    if (i == int(threadIdx.x)) before = total;
    total += masses[i];
  }
  const double target = uniform * total;
  if (before <= target && target < before + mass) {
    double sum = before;
    for (int64_t i = begin; i < end && sum <= target; i++) {
      if (!(w.z[i] > -INFINITY)) continue;
      const double weight = w.weight(i);
      if (weight <= 0 || weight < least) continue;
      sum += weight;
      s.token = int32_t(i);
    }
  }
  __syncthreads();
  return s.token;
}

// How to narrow down what is drawn from; as tr_request says.
struct Nucleus {
  int64_t topK;  // vocab: all
  double topP, minP;
};

// Draws from count sorted tokens in s.ranks, of which total is the mass that topP is a part of. Returns -1 if
// more tokens might stay than there are; all: there are no others.
__device__ inline int32_t drawSorted(const Weighed& w, const Nucleus& n, int64_t count, bool all,
                                     double total, double uniform, SelectShared& s) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) s.weights[i] = w.weight(tokenOf(s.ranks[i]));
  __syncthreads();
  if (threadIdx.x == 0) {
    if (total < 0) {
      total = 0;
      for (int64_t i = 0; i < count; i++) total += s.weights[i];
    }
    double mass = 0;
    int64_t kept = 0;
    while (kept < count && (kept == 0 || n.topP >= 1 || mass < n.topP * total)) {
      if (kept > 0 && s.weights[kept] < n.minP) break;
      mass += s.weights[kept++];
    }
    s.token = -1;
    if (kept < count || all) {
      double before = 0;
      int64_t i = 0;
      for (; i + 1 < kept; i++) {
        before += s.weights[i];
        if (before > uniform * mass) break;
      }
      s.token = tokenOf(s.ranks[i]);
    }
  }
  __syncthreads();
  return s.token;
}

// The highest rank from which on up the tokens weigh at least target, or more than it; bit by bit.
__device__ inline uint64_t rankOfMass(const Weighed& w, double least, double target, bool more,
                                      SelectShared& s) {
  uint64_t rank = 0;
  for (uint64_t bit = uint64_t(1) << 63; bit; bit >>= 1) {
    const double mass = massFrom(w, rank | bit, least, s);
    if (more ? mass > target : mass >= target) rank |= bit;
  }
  return rank;
}

// Draws where a list would be too long: without one, in a pass over the row for each bit of a rank.
__device__ inline int32_t drawRanked(const Weighed& w, const Nucleus& n, double uniform, SelectShared& s) {
  uint64_t last = 0;
  if (n.topK < drawableOf(w.z, w.vocab, s)) last = thresholdOf(w.z, w.vocab, n.topK, s);
  if (n.topP < 1) {
    const uint64_t byMass = rankOfMass(w, 0, n.topP * massFrom(w, last, 0, s), false, s);
    if (byMass > last) last = byMass;
  }
  const double target = uniform * massFrom(w, last, n.minP, s);
  uint64_t drawn = rankOfMass(w, n.minP, target, true, s);
  if (drawn < last) drawn = last;
  return tokenOf(drawn);
}

// Draws a token of a row that has one.
__device__ inline int32_t drawToken(const Weighed& w, const Draw& d, SelectShared& s) {
  const double uniform = double(d.random >> 11) * 0x1p-53;
  const bool all = d.topK <= 0 || d.topK >= w.vocab;
  if (all && d.topP >= 1) return drawAmongAll(w, double(d.minP), uniform, s);
  const Nucleus n = {all ? w.vocab : int64_t(d.topK), double(d.topP), double(d.minP)};
  const int64_t asked = n.topK < topMax ? n.topK : topMax;
  const int64_t count = selectTop(w.z, w.vocab, asked, s);
  const bool complete = count < asked || asked == n.topK;
  int32_t token = -1;
  if (complete || all) {
    const double total = complete && !all ? -1 : massFrom(w, 0, 0, s);
    token = drawSorted(w, n, count, complete, total, uniform, s);
  }
  return token >= 0 ? token : drawRanked(w, n, uniform, s);
}

}  // namespace cuda
