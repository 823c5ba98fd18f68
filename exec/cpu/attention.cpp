#include "attention.h"

#include <math.h>
#include <string.h>

#include "bf16.h"

namespace cpu {

namespace {

// Positions that rows begin to end - 1 of a request see together, a window left out of account.
int64_t positionsSeen(const AttentionRequest& r, int64_t begin, int64_t end) {
  return (end - begin) * (r.kvLength - r.rows) + (end - begin) * (begin + end + 1) / 2;
}

}  // namespace

void attend(const AttentionKernels& kernels, const Attention& a, int worker, int workers) {
  const int64_t step = attentionRowsMax(a.heads / a.kv.kvHeads);
  // The worker of a piece is the one whose share of all positions holds the piece's first; all workers go
  // through the same list. A piece runs when the next one is known.
  int64_t total = 0;
  for (int64_t i = 0; i < a.requestCount; i++) total += positionsSeen(a.requests[i], 0, a.requests[i].rows);
  total *= a.kv.kvHeads;
  int64_t before = 0;
  AttentionPiece piece = {};
  for (int64_t i = 0; i < a.requestCount; i++) {
    const AttentionRequest& r = a.requests[i];
    for (int64_t head = 0; head < a.kv.kvHeads; head++) {
      for (int64_t begin = 0; begin < r.rows; begin += step) {
        int64_t end = begin + step < r.rows ? begin + step : r.rows;
        const bool mine = before * workers / total == worker;
        before += positionsSeen(r, begin, end);
        if (!mine) continue;
        const AttentionPiece next = {&r, head, begin, end};
        if (piece.request) kernels.rows(a, piece, &next);
        piece = next;
      }
    }
  }
  if (piece.request) kernels.rows(a, piece, nullptr);
}

void storeKV(const KVPages& kv, const int32_t* pageTable, int64_t position, int64_t kvHead, const float* key,
             const float* value) {
  const int64_t token = position % kv.pageTokens;
  const int64_t head = kv.headOffset(pageTable[position / kv.pageTokens], kvHead);
  uint16_t *keys = kv.keys + head + kv.keyOffset(token, 0), *values = kv.values + head + kv.valueOffset(token, 0);
  uint16_t rounded[2][headDimMax];
  for (int64_t d = 0; d < kv.headDim; d++) rounded[0][d] = narrow(key[d]);
  for (int64_t d = 0; d < kv.headDim; d++) rounded[1][d] = narrow(value[d]);
  for (int64_t d = 0; d < kv.headDim; d += 2) memcpy(keys + d * blockTokens, rounded[0] + d, 2 * sizeof *keys);
  for (int64_t d = 0; d < kv.headDim; d++) values[2 * d] = rounded[1][d];
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
