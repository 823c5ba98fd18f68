#include "attention.h"

#include <math.h>
#include <string.h>

#include "bf16.h"

namespace cpu {

namespace {

int64_t piecesOf(const AttentionRequest& r, int64_t step) { return (r.rows + step - 1) / step; }

// Piece i of a batch: requests in order, their heads, and their rows step by step.
AttentionPiece pieceAt(const Attention& a, int64_t i, int64_t step) {
  const AttentionRequest* r = a.requests;
  for (int64_t all; i >= (all = a.kv.kvHeads * piecesOf(*r, step)); r++) i -= all;
  const int64_t each = piecesOf(*r, step), begin = i % each * step;
  return {r, i / each, begin, begin + step < r->rows ? begin + step : r->rows};
}

}  // namespace

void attend(const AttentionKernels& kernels, const Attention& a, Workers& workers, int worker) {
  const int64_t step = attentionRowsMax(a.heads / a.kv.kvHeads);
  int64_t count = 0;
  for (int64_t i = 0; i < a.requestCount; i++) count += a.kv.kvHeads * piecesOf(a.requests[i], step);
  // A piece runs when the next one is known.
  for (Range r = workers.take(count, 1, worker), next; r.begin < r.end; r = next) {
    next = workers.take(count, 1, worker);
    const AttentionPiece piece = pieceAt(a, r.begin, step);
    if (next.begin == next.end) {
      kernels.rows(a, piece, nullptr);
      break;
    }
    const AttentionPiece after = pieceAt(a, next.begin, step);
    kernels.rows(a, piece, &after);
  }
}

void storeKV(const KVPages& kv, const int32_t* pageTable, int64_t position, int64_t kvHead,
             const uint16_t* key, const uint16_t* value) {
  const int64_t token = position % kv.pageTokens;
  const int64_t head = kv.headOffset(pageTable[position / kv.pageTokens], kvHead);
  uint16_t* keys = kv.keys + head + kv.keyOffset(token, 0);
  uint16_t* values = kv.values + head + kv.valueOffset(token, 0);
  for (int64_t d = 0; d < kv.headDim; d += 2) memcpy(keys + d * blockTokens, key + d, 2 * sizeof *keys);
  for (int64_t d = 0; d < kv.headDim; d++) values[2 * d] = value[d];
}

void fetchKV(const KVPages& kv, const int32_t* pageTable, int64_t position, int64_t kvHead) {
  const int64_t token = position % kv.pageTokens;
  const int64_t head = kv.headOffset(pageTable[position / kv.pageTokens], kvHead);
  const uint16_t* keys = kv.keys + head + kv.keyOffset(token, 0);
  const uint16_t* values = kv.values + head + kv.valueOffset(token, 0);
  for (int64_t d = 0; d < kv.headDim; d += 2) __builtin_prefetch(keys + d * blockTokens, 1);
  for (int64_t d = 0; d < kv.headDim; d += blockTokens) __builtin_prefetch(values + 2 * d, 1);
}

namespace {

void referenceRow(const Attention& a, const AttentionRequest& r, int64_t row, int64_t head, double* out) {
  const KVPages& kv = a.kv;
  const int64_t position = r.kvLength - r.rows + row, kvHead = head / (a.heads / kv.kvHeads);
  const int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  const float* q = a.q + (r.firstRow + row) * a.qStride + head * kv.headDim;
  auto place = [&](int64_t t) { return kv.headOffset(r.pageTable[t / kv.pageTokens], kvHead); };
  auto score = [&](int64_t t) {
    double dot = 0;
    const uint16_t* keys = kv.keys + place(t);
    for (int64_t d = 0; d < kv.headDim; d++) {
      dot += double(q[d]) * double(widen(keys[kv.keyOffset(t % kv.pageTokens, d)]));
    }
    return dot * double(a.scale);
  };
  double max = -INFINITY, sum = 0;
  for (int64_t t = first; t <= position; t++) max = fmax(max, score(t));
  for (int64_t d = 0; d < kv.headDim; d++) out[d] = 0;
  for (int64_t t = first; t <= position; t++) {
    double weight = exp(score(t) - max);
    sum += weight;
    const uint16_t* values = kv.values + place(t);
    for (int64_t d = 0; d < kv.headDim; d++) {
      out[d] += weight * double(widen(values[kv.valueOffset(t % kv.pageTokens, d)]));
    }
  }
  for (int64_t d = 0; d < kv.headDim; d++) out[d] /= sum;
}

}  // namespace

void attentionReference(const Attention& a, double* out) {
  for (int64_t i = 0; i < a.requestCount; i++) {
    const AttentionRequest& r = a.requests[i];
    for (int64_t row = 0; row < r.rows; row++) {
      for (int64_t head = 0; head < a.heads; head++) {
        referenceRow(a, r, row, head, out + ((r.firstRow + row) * a.heads + head) * a.kv.headDim);
      }
    }
  }
}

}  // namespace cpu
