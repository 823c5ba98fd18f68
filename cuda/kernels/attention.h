// Attention over a paged KV cache.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

namespace cuda {

// Tokens and dimensions of a tile, and tokens of a segment, in which softmax goes: counted from position 0,
// so that a row's bits depend on neither the batch, nor the size of a page, nor the way its prompt was cut.
constexpr int64_t tileTokens = 16, tileDims = 16, tileElements = tileTokens * tileDims;
constexpr int64_t segmentTokens = 256;

constexpr int64_t headDimMax = 128;

// A head takes this many numbers in queries, keys and values; what fills it up is zero. 0: too many.
int64_t headStrideOf(int64_t headDim);

// Keys and values of one layer in pages: [page][kvHead][pageTokens * headStride] bf16 each. Inside they lie
// in tiles of 16 tokens and 16 dimensions, [token / 16][dimension / 16][32 lanes][8]: what a lane reads in
// one load are its operands of two products of mma.m16n8k16, of query and key, and of weight and value.
struct KVPages {
  uint16_t *keys, *values;
  int64_t kvHeads, headStride;
  int64_t pageTokens;  // a multiple of 16

  __host__ __device__ int64_t tile(int64_t page, int64_t kvHead, int64_t token, int64_t dim) const {
    const int64_t head = (page * kvHeads + kvHead) * pageTokens * headStride;
    return head + (token / tileTokens * (headStride / tileDims) + dim / tileDims) * tileElements;
  }

  // Where dimension d of a token of a page lies; across is token % 16 for keys and d % 16 for values, along
  // the other one.
  __host__ __device__ static int64_t place(int64_t across, int64_t along) {
    const int64_t lane = across % 8 * 4 + along % 8 / 2;
    return lane * 8 + across / 8 * 4 + along / 8 * 2 + along % 2;
  }
  __host__ __device__ int64_t keyAt(int64_t page, int64_t kvHead, int64_t token, int64_t d) const {
    return tile(page, kvHead, token, d) + place(token % tileTokens, d % tileDims);
  }
  __host__ __device__ int64_t valueAt(int64_t page, int64_t kvHead, int64_t token, int64_t d) const {
    return tile(page, kvHead, token, d) + place(d % tileDims, token % tileTokens);
  }
};

// Queries, keys and values of rows, as their product gave them, on the way to attention.
struct Rotate {
  const float* qkv;  // [rows][qkvStride]: heads of headStride numbers: heads, kvHeads, kvHeads
  int64_t qkvStride;
  const float* bias;           // in the same order, or null
  const float *qNorm, *kNorm;  // [headDim], or null
  float epsilon;
  const float *cosines, *sines;  // [rows][headDim / 2]
  int64_t heads, headDim;
  uint16_t* q;  // [rows][heads * headStride]
  KVPages kv;
  const int32_t *positions, *slots;  // [rows]
  const int32_t* tables;             // [slot][tablePages]: pages
  int64_t tablePages;
};

// Adds the bias; q and k of each head: x / sqrt(mean of squares + epsilon) * norm unless that is null, then
// the rotation of pairs i and i + headDim / 2 by the angles given. Queries go to q, keys and values to their
// pages, all rounded to bf16 and filled up with zeros. A value that is not finite makes its key NaN: so who
// sees it is NaN, and who does not need not care.
cudaError_t rotate(const Rotate& r, int64_t rows, cudaStream_t stream);

// Bound of the error before a result is rounded, times the largest number of the head.
constexpr double rotateTolerance = 4e-6;

// The same of one head, in double, on the host.
void rotateReference(const float* x, const float* bias, const float* weight, double epsilon,
                     const float* cosines, const float* sines, int64_t dim, double* out);

// Rows of a request, at the query heads of one KV head, that a block takes: units unit to unit + 15, of which
// number u is row u / group at query head u % group; and segments begin to end - 1 of what they see.
struct AttentionItem {
  int32_t slot;
  int32_t row, out;     // of q and of the output: the first of the request
  int32_t start;        // the position of that row
  int32_t unit, units;  // units: all that the request has
  int32_t begin, end;
  int32_t part, parts;  // part of parts that the segments are dealt out to
  int32_t partial;      // where the results of part 0 lie, if parts > 1: those of the others follow
  int32_t count;        // number of the counter of parts that are done, if parts > 1
};

// A batch at one layer.
struct Attention {
  KVPages kv;
  const int32_t* tables;  // [slot][tablePages]
  int64_t tablePages;
  const uint16_t* q;  // [rows][heads * headStride]
  uint16_t* out;      // [rows][outStride], head h at h * headStride
  int64_t outStride;
  int64_t heads;   // a multiple of kvHeads
  int64_t window;  // a row sees its last window positions, its own among them; 0: all
  float scale;     // of q * k
  const AttentionItem* items;
  const int32_t* itemCount;
  float* partials;  // [kvHead][partialsMax][partialFloats(headStride)]
  int64_t partialsMax;
  int32_t* counters;  // [kvHead][countersMax], 0 before and after
  int64_t countersMax;
};

constexpr int64_t unitsMax = 16;

// Of a part: for each of 16 units the sums of weight * value, the largest score and the sum of weights.
inline int64_t partialFloats(int64_t headStride) { return unitsMax * (headStride + 2); }

// blocks: how many share out the items, for each KV head.
cudaError_t attend(const Attention& a, int64_t blocks, cudaStream_t stream);

// Bound on |out - exact| over the largest |value| that the row sees: weights are rounded to bf16, by up to
// 2^-9, and so is the result.
constexpr double attentionTolerance = 2e-5 + 0x1p-9 + 0x1p-8;

// One row at one head, in double, on the host, with all pointers of the host.
void attentionReference(const Attention& a, int32_t slot, int64_t row, int64_t position, int64_t head,
                        double* out);

}  // namespace cuda
