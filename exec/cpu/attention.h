// Attention over a paged KV cache.
#pragma once

#include <stdint.h>

#include "paths.h"
#include "workers.h"

namespace cpu {

// Tokens that one step of the kernels takes: sixteen lanes.
constexpr int blockTokens = 16;

constexpr int64_t headDimMax = 256, groupMax = 64;

// Keys and values of one layer in pages: [page][kvHead][pageTokens * headDim] bf16 each, so that the tokens
// of a page and head lie together. Inside, tokens go in blocks of 16:
//   keys    [block][headDim / 2][16 tokens][2]   a line has two dimensions of 16 tokens
//   values  [block][8 token pairs][headDim][2]   a line has 16 dimensions of two tokens
// Lines have 64 bytes; sixteen of them are a tile for AMX, with keys as the operand of q * k and values of p
// * v.
struct KVPages {
  uint16_t *keys, *values;
  int64_t pages, kvHeads;
  int64_t headDim;     // a multiple of 16, at most headDimMax
  int64_t pageTokens;  // a multiple of 16

  int64_t headElements() const { return pageTokens * headDim; }

  // Where a head of a page begins.
  int64_t headOffset(int64_t page, int64_t kvHead) const {
    return (page * kvHeads + kvHead) * headElements();
  }

  // Where dimension d of a token of a page lies, from the beginning of its head.
  int64_t keyOffset(int64_t token, int64_t d) const {
    int64_t block = token / blockTokens * blockTokens * headDim;
    return block + d / 2 * (2 * blockTokens) + token % blockTokens * 2 + d % 2;
  }
  int64_t valueOffset(int64_t token, int64_t d) const { return token / 2 * 2 * headDim + d * 2 + token % 2; }
};

// One request: consecutive rows of the batch are its last tokens. Row r of rows has position kvLength - rows
// + r and sees all positions up to its own.
struct AttentionRequest {
  int64_t firstRow, rows, kvLength;
  const int32_t* pageTable;  // page of tokens 0 to pageTokens - 1, of the next pageTokens, and so on
};

// A batch of requests of any lengths at one layer.
struct Attention {
  KVPages kv;
  int64_t heads;        // a multiple of kvHeads; query head h reads KV head h / (heads / kvHeads)
  int64_t window;       // a row sees its last window positions, its own among them; 0: all
  float scale;          // of q * k, 1 / sqrt(headDim) as a rule
  const float* q;       // [row][qStride], head h at h * headDim
  int64_t qStride;
  float* out;           // [row][outStride], head h at h * headDim
  int64_t outStride;
  const AttentionRequest* requests;
  int64_t requestCount;
};

// Bounds on |out - exact| over the largest |value| that the row sees, for scores of moderate size, below 100.
// With AMX weights are rounded to bf16, by up to 2^-9, and so are queries before all else: exact is then the
// result of the rounded ones.
constexpr double attentionTolerance = 2e-5, attentionTileTolerance = attentionTolerance + 0x1p-9;

// Rows begin to end - 1 of a request, at the query heads of one KV head.
struct AttentionPiece {
  const AttentionRequest* request;
  int64_t kvHead, begin, end;
};

struct AttentionKernels {
  // One piece. next is the piece that the worker takes after it, or null: what its first positions hold may
  // be fetched meanwhile. Softmax goes over blocks of 16
  // positions in order, with AMX over 64, counted from position 0, so that a row's result has the same bits
  // in any batch, however its prompt was cut, and for any size of page.
  void (*rows)(const Attention& a, const AttentionPiece& piece, const AttentionPiece* next);
  double tolerance;
};

#if defined(__x86_64__)
extern const AttentionKernels attentionKernelsAmx;
#endif

// Rows that one call of the kernel takes at most, for this many query heads a KV head.
inline int64_t attentionRowsMax(int64_t group) { return group >= 32 ? 1 : 32 / group; }

// The whole batch, piece by piece; to be called by every worker inside a run.
void attend(const AttentionKernels& kernels, const Attention& a, Workers& workers, int worker);

// Puts a key and a value of one head, headDim numbers of bf16 each, at a position.
void storeKV(const KVPages& kv, const int32_t* pageTable, int64_t position, int64_t kvHead,
             const uint16_t* key, const uint16_t* value);

// Fetches the lines that storeKV will write to.
void fetchKV(const KVPages& kv, const int32_t* pageTable, int64_t position, int64_t kvHead);

// The same attention in double: out[row][heads * headDim].
void attentionReference(const Attention& a, double* out);

}  // namespace cpu
