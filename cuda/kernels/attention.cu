#include "attention.h"
#include "common.cuh"

namespace cuda {

namespace {

constexpr int attentionWarps = 4, attentionThreads = attentionWarps * warpThreads;

// The softmax of 16 units over the segments so far.
template <int stride>
struct AttentionShared {
  float sums[unitsMax][stride];  // of weight * value, against max
  float max[unitsMax], weights[unitsMax];
  float segment[unitsMax][stride];  // the same of one segment
  float segmentMax[attentionWarps][unitsMax], segmentWeights[attentionWarps][unitsMax];
  int last;
};

// e^(score - max), 0 for a score of what nobody sees: the weight of a score, and by what sums against one
// maximum shrink when there is a larger one.
__device__ __forceinline__ float weightOf(float score, float max) {
  return score == -INFINITY ? 0.0f : __expf(score - max);
}

// Zero in place of what is not finite: what nobody sees has weight 0, and 0 times infinity would be NaN.
__device__ __forceinline__ uint32_t finitePair(uint32_t pair) {
  if ((pair & 0x7f80u) == 0x7f80u) pair &= 0xffff0000u;
  if ((pair & 0x7f800000u) == 0x7f800000u) pair &= 0xffffu;
  return pair;
}

// What one warp makes of its tiles of a segment: rows lane / 4 and lane / 4 + 8 of the units, in the
// fragments of mma.m16n8k16.
template <int dims>
struct WarpSoftmax {
  float sums[dims][2][4];
  float max[2], weights[2];
};

// Which positions a lane's two units see: first to last.
struct Sight {
  int first[2], last[2];
};

template <int dims>
__device__ __forceinline__ void takeTile(const Attention& a, const uint32_t (*q)[4], const Sight& sight,
                                         int64_t at, int start, WarpSoftmax<dims>& w) {
  const int lane = int(threadIdx.x) % warpThreads, pair = lane % 4;
  uint4 values[dims];  // on their way while softmax goes on
  float scores[2][4] = {};
#pragma unroll
  for (int d = 0; d < dims; d++) {
    const uint4 keys = loadFour(a.kv.keys + at + d * tileElements + lane * 8);
    values[d] = loadFour(a.kv.values + at + d * tileElements + lane * 8);
    const uint32_t left[2] = {keys.x, keys.y}, right[2] = {keys.z, keys.w};
    multiplyTiles(scores[0], q[d], left);
    multiplyTiles(scores[1], q[d], right);
  }
  float most[2] = {-INFINITY, -INFINITY};
  bool whole = true;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int unit = i % 4 / 2, position = start + i / 4 * 8 + 2 * pair + i % 2;
    float& score = scores[i / 4][i % 4];
    const bool seen = position >= sight.first[unit] && position <= sight.last[unit];
    score = seen ? score * a.scale : -INFINITY;
    whole = whole && seen;
    most[unit] = fmaxf(most[unit], score);  // a NaN is no maximum; its weight is one
  }
  whole = __all_sync(wholeWarp, whole);
  float shrink[2];
#pragma unroll
  for (int unit = 0; unit < 2; unit++) {
    for (int mask = 1; mask <= 2; mask *= 2) {
      most[unit] = fmaxf(most[unit], __shfl_xor_sync(wholeWarp, most[unit], mask));
    }
    const float max = fmaxf(w.max[unit], most[unit]);
    shrink[unit] = weightOf(w.max[unit], max);
    w.max[unit] = max;
    w.weights[unit] *= shrink[unit];
  }
  uint32_t weights[4];
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const int unit = i % 4 / 2;
    const float *score = &scores[i / 4][i % 4], max = w.max[unit];
    weights[i / 2] = narrowPair(weightOf(score[0], max), weightOf(score[1], max));
    w.weights[unit] += widen(uint16_t(weights[i / 2])) + widen(uint16_t(weights[i / 2] >> 16));
  }
#pragma unroll
  for (int d = 0; d < dims; d++) {
    uint4 v = values[d];
    if (!whole) v = {finitePair(v.x), finitePair(v.y), finitePair(v.z), finitePair(v.w)};
    const uint32_t left[2] = {v.x, v.y}, right[2] = {v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      w.sums[d][0][i] *= shrink[i / 2];
      w.sums[d][1][i] *= shrink[i / 2];
    }
    multiplyTiles(w.sums[d][0], weights, left);
    multiplyTiles(w.sums[d][1], weights, right);
  }
}

// Joins what the warps have of a segment, in order.
template <int dims>
__device__ void joinWarps(AttentionShared<dims* int(tileDims)>& s, const WarpSoftmax<dims>& w) {
  const int warp = int(threadIdx.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  const int group = lane / 4, pair = lane % 4;
  float weights[2];
#pragma unroll
  for (int unit = 0; unit < 2; unit++) {
    weights[unit] = w.weights[unit];
    for (int mask = 1; mask <= 2; mask *= 2) {
      weights[unit] += __shfl_xor_sync(wholeWarp, weights[unit], mask);
    }
    if (pair == 0) {
      s.segmentMax[warp][group + 8 * unit] = w.max[unit];
      s.segmentWeights[warp][group + 8 * unit] = weights[unit];
    }
  }
  __syncthreads();
  float shrink[2];
#pragma unroll
  for (int unit = 0; unit < 2; unit++) {
    float max = -INFINITY;
    for (int i = 0; i < attentionWarps; i++) max = fmaxf(max, s.segmentMax[i][group + 8 * unit]);
    shrink[unit] = weightOf(w.max[unit], max);
  }
  for (int turn = 0; turn < attentionWarps; turn++) {
    if (warp == turn) {
#pragma unroll
      for (int d = 0; d < dims; d++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
          const int unit = i % 4 / 2, dim = d * int(tileDims) + i / 4 * 8 + 2 * pair + i % 2;
          const float term = w.sums[d][i / 4][i % 4] * shrink[unit];
          float& sum = s.segment[group + 8 * unit][dim];
          sum = turn == 0 ? term : sum + term;
        }
      }
    }
    __syncthreads();
  }
}

// Adds sums, their maximum and weights to the softmax so far of a unit; lane is of the threads that share it.
// What is fused is said, and not left to the compiler: a segment that comes in a part of its own has the same
// bits.
template <int stride>
__device__ __forceinline__ void addTo(AttentionShared<stride>& s, int unit, int lane, const float* sums,
                                      float max, float weights) {
  const float before = s.max[unit], now = fmaxf(before, max);
  const float shrink = weightOf(before, now), factor = weightOf(max, now);
  __syncwarp();
  for (int d = lane; d < stride; d += warpThreads) {
    s.sums[unit][d] = fmaf(s.sums[unit][d], shrink, sums[d] * factor);
  }
  if (lane == 0) {
    s.weights[unit] = fmaf(s.weights[unit], shrink, weights * factor);
    s.max[unit] = now;
  }
}

// Adds the segment.
template <int stride>
__device__ void addSegment(AttentionShared<stride>& s) {
  const int warp = int(threadIdx.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  for (int unit = warp; unit < unitsMax; unit += attentionWarps) {
    float max = -INFINITY, weights = 0;
    for (int i = 0; i < attentionWarps; i++) max = fmaxf(max, s.segmentMax[i][unit]);
    for (int i = 0; i < attentionWarps; i++) {
      weights += s.segmentWeights[i][unit] * weightOf(s.segmentMax[i][unit], max);
    }
    addTo<stride>(s, unit, lane, s.segment[unit], max, weights);
  }
  __syncthreads();
}

template <int stride>
__device__ void clear(AttentionShared<stride>& s) {
  for (int i = int(threadIdx.x); i < unitsMax * stride; i += attentionThreads) {
    s.sums[i / stride][i % stride] = 0;
  }
  if (threadIdx.x < unitsMax) {
    s.max[threadIdx.x] = -INFINITY;
    s.weights[threadIdx.x] = 0;
  }
  __syncthreads();
}

// Writes the softmax so far where those of the other parts are. Reports whether all parts are there now.
template <int stride>
__device__ bool putPartial(const Attention& a, AttentionShared<stride>& s, const AttentionItem& item,
                           float* partials) {
  float* to = partials + item.part * unitsMax * (stride + 2);
  for (int i = int(threadIdx.x); i < unitsMax * stride; i += attentionThreads) {
    to[i] = s.sums[i / stride][i % stride];
  }
  if (threadIdx.x < unitsMax) {
    to[unitsMax * stride + threadIdx.x] = s.max[threadIdx.x];
    to[unitsMax * (stride + 1) + threadIdx.x] = s.weights[threadIdx.x];
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t* counter = a.counters + blockIdx.y * a.countersMax + item.count;
    s.last = atomicAdd(counter, 1) == item.parts - 1;
    if (s.last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return s.last != 0;
}

// Joins all parts, in order.
template <int stride>
__device__ void joinPartials(AttentionShared<stride>& s, const AttentionItem& item, const float* partials) {
  const int warp = int(threadIdx.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  clear<stride>(s);
  for (int part = 0; part < item.parts; part++) {
    const float* from = partials + part * unitsMax * (stride + 2);
    for (int unit = warp; unit < unitsMax; unit += attentionWarps) {
      addTo<stride>(s, unit, lane, from + unit * stride, from[unitsMax * stride + unit],
                    from[unitsMax * (stride + 1) + unit]);
      __syncwarp();
    }
  }
  __syncthreads();
}

template <int dims>
__device__ void takeSegment(const Attention& a, const AttentionItem& item, const uint32_t (*q)[4],
                            const Sight& sight, int from, int last, AttentionShared<dims* int(tileDims)>& s) {
  const int warp = int(threadIdx.x) / warpThreads;
  WarpSoftmax<dims> w = {};
  w.max[0] = w.max[1] = -INFINITY;
  const int end = from + int(segmentTokens) <= last + 1 ? from + int(segmentTokens) : last + 1;
  for (int start = from + warp * int(tileTokens); start < end; start += attentionWarps * int(tileTokens)) {
    const int64_t page = a.tables[item.slot * a.tablePages + start / a.kv.pageTokens];
    const int64_t at = a.kv.tile(page, blockIdx.y, start % a.kv.pageTokens, 0);
    takeTile<dims>(a, q, sight, at, start, w);
  }
  joinWarps<dims>(s, w);
  addSegment<dims* int(tileDims)>(s);
}

template <int dims>
__device__ void takeItem(const Attention& a, const AttentionItem& item,
                         AttentionShared<dims* int(tileDims)>& s) {
  constexpr int stride = dims * int(tileDims);
  const int warp = int(threadIdx.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  const int64_t group = a.heads / a.kv.kvHeads, rowStride = a.heads * stride;
  uint32_t q[dims][4];
  Sight sight;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int unit = item.unit + lane / 4 + 8 * i;
    const bool there = unit < item.units;
    const int row = int(unit / group), position = item.start + row;
    const int64_t head = blockIdx.y * group + unit % group;
    const uint16_t* from = a.q + (item.row + row) * rowStride + head * stride + 2 * (lane % 4);
    // A unit that is not there sees all, and nobody sees it: tiles that the others see are whole then.
    sight.last[i] = there ? position : INT32_MAX;
    sight.first[i] = there && a.window > 0 && position >= a.window ? int(position - a.window + 1) : 0;
#pragma unroll
    for (int d = 0; d < dims; d++) {
      q[d][i] = there ? *reinterpret_cast<const uint32_t*>(from + d * tileDims) : 0;
      q[d][i + 2] = there ? *reinterpret_cast<const uint32_t*>(from + d * tileDims + 8) : 0;
    }
  }
  const int unitsHere = item.units - item.unit < unitsMax ? item.units - item.unit : int(unitsMax);
  const int last = item.start + int((item.unit + unitsHere - 1) / group);
  const int64_t first = item.start + item.unit / group - a.window + 1;  // what its first row sees in a window
  clear<stride>(s);
  for (int segment = item.begin; segment < item.end; segment++) {
    if (a.window > 0 && (segment + 1) * segmentTokens <= first) continue;  // nobody sees it
    takeSegment<dims>(a, item, q, sight, segment * int(segmentTokens), last, s);
  }
  if (item.parts > 1) {
    float* partials = a.partials + (blockIdx.y * a.partialsMax + item.partial) * unitsMax * (stride + 2);
    if (!putPartial<stride>(a, s, item, partials)) return;
    joinPartials<stride>(s, item, partials);
  }
  for (int unit = warp; unit < unitsHere; unit += attentionWarps) {
    const int64_t row = item.out + (item.unit + unit) / group;
    uint16_t* out = a.out + row * a.outStride + (blockIdx.y * group + (item.unit + unit) % group) * stride;
    for (int d = lane; d < stride; d += warpThreads) out[d] = narrow(s.sums[unit][d] / s.weights[unit]);
  }
}

template <int dims>
__global__ void __launch_bounds__(attentionThreads, 2) attentionKernel(Attention a) {
  auto& shared = sharedMemory<AttentionShared<dims* int(tileDims)>>();
  const int count = *a.itemCount;
  for (int i = int(blockIdx.x); i < count; i += int(gridDim.x)) {
    takeItem<dims>(a, a.items[i], shared);
    __syncthreads();
  }
}

template <int dims>
cudaError_t launchAttention(const Attention& a, int64_t blocks, cudaStream_t stream) {
  return launch(attentionKernel<dims>, dim3(unsigned(blocks), unsigned(a.kv.kvHeads)), attentionThreads,
                stream, a);
}

}  // namespace

int64_t headStrideOf(int64_t headDim) {
  for (int64_t dims : {1, 2, 4, 6, 8}) {
    if (headDim <= dims * tileDims) return dims * tileDims;
  }
  return 0;
}

cudaError_t attend(const Attention& a, int64_t blocks, cudaStream_t stream) {
  switch (a.kv.headStride / tileDims) {
    case 1:
      return launchAttention<1>(a, blocks, stream);
    case 2:
      return launchAttention<2>(a, blocks, stream);
    case 4:
      return launchAttention<4>(a, blocks, stream);
    case 6:
      return launchAttention<6>(a, blocks, stream);
    case 8:
      return launchAttention<8>(a, blocks, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

void attentionReference(const Attention& a, int32_t slot, int64_t row, int64_t position, int64_t head,
                        double* out) {
  const KVPages& kv = a.kv;
  const int64_t kvHead = head / (a.heads / kv.kvHeads), dim = kv.headStride;
  const int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  const uint16_t* q = a.q + (row * a.heads + head) * dim;
  auto page = [&](int64_t t) { return a.tables[slot * a.tablePages + t / kv.pageTokens]; };
  auto score = [&](int64_t t) {
    double dot = 0;
    for (int64_t d = 0; d < dim; d++) {
      dot += double(widen(q[d])) * double(widen(kv.keys[kv.keyAt(page(t), kvHead, t % kv.pageTokens, d)]));
    }
    return dot * double(a.scale);
  };
  double max = -INFINITY, sum = 0;
  for (int64_t t = first; t <= position; t++) max = fmax(max, score(t));
  for (int64_t d = 0; d < dim; d++) out[d] = 0;
  for (int64_t t = first; t <= position; t++) {
    const double weight = exp(score(t) - max);
    sum += weight;
    for (int64_t d = 0; d < dim; d++) {
      out[d] += weight * double(widen(kv.values[kv.valueAt(page(t), kvHead, t % kv.pageTokens, d)]));
    }
  }
  for (int64_t d = 0; d < dim; d++) out[d] /= sum;
}

}  // namespace cuda
