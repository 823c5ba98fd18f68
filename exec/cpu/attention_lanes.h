// The kernel of attention.h over lanes. Included by lanes_*.cpp only.
#pragma once

#include <math.h>

#include "attention.h"
#include "lanes.h"

namespace cpu {
namespace {

// One query head of one row on its way through the positions: the softmax so far.
struct Unit {
  const float* q;    // scaled
  float* sums;       // headDim sums of weight * value
  Lanes weights;     // sums of weights, by position modulo 16
  float max;         // largest score so far
  int64_t first, position;  // positions that it sees
};

// A block of 16 positions that begins at start, and the keys and values to fetch into the second-level cache
// meanwhile: those of the next block. Line by line, for a burst of fetches would hold up the arithmetic.
struct Block {
  const uint16_t *keys, *values, *nextKeys, *nextValues;
  int64_t start, headDim;
};

// Positions of the block that the unit sees: from begin to end - 1 of 0 to 16.
LANES_INLINE void visible(const Unit& u, const Block& b, int64_t* begin, int64_t* end) {
  *begin = u.first > b.start ? u.first - b.start : 0;
  *end = u.position + 1 - b.start < blockTokens ? u.position + 1 - b.start : blockTokens;
}

LANES_INLINE Lanes laneNumbers() { return Lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

// Scores of 16 positions for some units, in four sums that take turns so that none waits for the one before.
template <int count>
LANES_INLINE void scores(Unit* units, const Block& b, Lanes* out) {
  Lanes sums[count][4] = {};
  for (int64_t d = 0; d < b.headDim; d += 4) {
    __builtin_prefetch(b.nextKeys + d * blockTokens, 0, 2);
    __builtin_prefetch(b.nextKeys + (d + 2) * blockTokens, 0, 2);
    Words near = loadPairs(b.keys + d * blockTokens), far = loadPairs(b.keys + (d + 2) * blockTokens);
    for (int i = 0; i < count; i++) {
      const float* q = units[i].q + d;
      sums[i][0] = multiplyAdd(spread(q[0]), firsts(near), sums[i][0]);
      sums[i][1] = multiplyAdd(spread(q[1]), seconds(near), sums[i][1]);
      sums[i][2] = multiplyAdd(spread(q[2]), firsts(far), sums[i][2]);
      sums[i][3] = multiplyAdd(spread(q[3]), seconds(far), sums[i][3]);
    }
  }
  for (int i = 0; i < count; i++) out[i] = (sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]);
}

// Turns scores into weights against the largest score so far, and says by what earlier sums shrink. What the
// unit does not see has weight 0, whatever lies there.
LANES_INLINE Lanes weigh(Unit& u, const Block& b, Lanes score, float* weights) {
  int64_t begin, end;
  visible(u, b, &begin, &end);
  if (begin > 0 || end < blockTokens) {
    Lanes lane = laneNumbers();
    Lanes seen = lane < float(end) ? score : spread(-INFINITY);
    score = lane < float(begin) ? spread(-INFINITY) : seen;
  }
  float most = maxOf(score);
  float max = most > u.max ? most : u.max;
  Lanes shrink = exponential(spread(u.max - max));
  Lanes weight = exponential(score - max);
  u.weights = multiplyAdd(u.weights, shrink, weight);
  u.max = max;
  store(weights, weight);
  return shrink;
}

// Adds weight * value of a whole block for some units.
template <int count>
LANES_INLINE void addValues(Unit* units, const Block& b, const Lanes* shrink,
                            const float (*weights)[blockTokens]) {
  for (int64_t d = 0; d < b.headDim; d += laneCount) {
    Lanes sums[count];
    for (int i = 0; i < count; i++) sums[i] = load(units[i].sums + d) * shrink[i];
    for (int t = 0; t < blockTokens; t += 2) {
      __builtin_prefetch(b.nextValues + t * b.headDim + 2 * d, 0, 2);
      Words pairs = loadPairs(b.values + t * b.headDim + 2 * d);
      for (int i = 0; i < count; i++) {
        sums[i] = multiplyAdd(spread(weights[i][t]), firsts(pairs), sums[i]);
        sums[i] = multiplyAdd(spread(weights[i][t + 1]), seconds(pairs), sums[i]);
      }
    }
    for (int i = 0; i < count; i++) store(units[i].sums + d, sums[i]);
  }
}

// The same for a block of which the unit does not see all. What it does not see is not touched: a page may
// hold anything there, not a number included.
void addSomeValues(Unit& u, const Block& b, Lanes shrink, const float* weights) {
  int64_t begin, end;
  visible(u, b, &begin, &end);
  for (int64_t d = 0; d < b.headDim; d += laneCount) {
    Lanes sums = load(u.sums + d) * shrink;
    for (int64_t t = begin; t < end; t++) {
      Words pairs = loadPairs(b.values + t / 2 * 2 * b.headDim + 2 * d);
      sums = multiplyAdd(spread(weights[t]), t % 2 ? seconds(pairs) : firsts(pairs), sums);
    }
    store(u.sums + d, sums);
  }
}

template <int count>
LANES_INLINE void takeBlock(Unit* units, const Block& b) {
  Lanes score[count], shrink[count];
  alignas(64) float weights[count][blockTokens];
  scores<count>(units, b, score);
  bool whole = true;
  for (int i = 0; i < count; i++) {
    shrink[i] = weigh(units[i], b, score[i], weights[i]);
    int64_t begin, end;
    visible(units[i], b, &begin, &end);
    whole = whole && begin == 0 && end == blockTokens;
  }
  if (whole) {
    addValues<count>(units, b, shrink, weights);
    return;
  }
  for (int i = 0; i < count; i++) addSomeValues(units[i], b, shrink[i], weights[i]);
}

LANES_INLINE bool sees(const Unit& u, const Block& b) {
  return u.position >= b.start && u.first < b.start + blockTokens;
}

void takeBlocks(const Attention& a, const AttentionRequest& r, int64_t kvHead, Unit* units, int64_t count,
                int64_t first, int64_t last) {
  const KVPages& kv = a.kv;
  auto blockAt = [&](int64_t start) {
    int64_t page = r.pageTable[start / kv.pageTokens];
    int64_t at = kv.headOffset(page, kvHead) + start % kv.pageTokens * kv.headDim;
    return Block{kv.keys + at, kv.values + at, kv.keys + at, kv.values + at, start, kv.headDim};
  };
  for (int64_t start = first / blockTokens * blockTokens; start <= last; start += blockTokens) {
    Block b = blockAt(start);
    if (start + blockTokens <= last) {
      Block next = blockAt(start + blockTokens);
      b.nextKeys = next.keys;
      b.nextValues = next.values;
    }
    for (int64_t i = 0; i < count;) {
      if (!sees(units[i], b)) {
        i++;
      } else if (i + 1 < count && sees(units[i + 1], b)) {
        takeBlock<2>(units + i, b);
        i += 2;
      } else {
        takeBlock<1>(units + i, b);
        i++;
      }
    }
  }
}

void attentionRows(const Attention& a, const AttentionPiece& piece, const AttentionPiece*) {
  const AttentionRequest& r = *piece.request;
  const int64_t kvHead = piece.kvHead, begin = piece.begin, end = piece.end;
  const int64_t dim = a.kv.headDim, group = a.heads / a.kv.kvHeads, count = (end - begin) * group;
  alignas(64) float queries[groupMax * headDimMax], sums[groupMax * headDimMax];
  Unit units[groupMax];
  const int64_t before = r.kvLength - r.rows;
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = begin + i / group, head = kvHead * group + i % group, position = before + row;
    const float* q = a.q + (r.firstRow + row) * a.qStride + head * dim;
    for (int64_t d = 0; d < dim; d += laneCount) {
      store(queries + i * dim + d, load(q + d) * a.scale);
      store(sums + i * dim + d, Lanes{});
    }
    int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
    units[i] = {queries + i * dim, sums + i * dim, Lanes{}, -INFINITY, first, position};
  }
  takeBlocks(a, r, kvHead, units, count, units[0].first, units[count - 1].position);
  for (int64_t i = 0; i < count; i++) {
    float* out = a.out + (r.firstRow + begin + i / group) * a.outStride + (kvHead * group + i % group) * dim;
    const float total = sumOf(units[i].weights);
    for (int64_t d = 0; d < dim; d += laneCount) store(out + d, load(units[i].sums + d) / total);
  }
}

constexpr AttentionKernels attentionKernels = {attentionRows, attentionTolerance};

}  // namespace
}  // namespace cpu
