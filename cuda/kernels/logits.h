// What a step says about its logits, and the tokens that it draws.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "../../exec/native/native.h"

namespace cuda {

// Logits are described in chunks of fixed size, whose parts are put together in order.
constexpr int64_t chunkLogits = 1024;

inline int64_t chunksOf(int64_t vocab) { return (vocab + chunkLogits - 1) / chunkLogits; }

struct ChunkStatistics {
  double sum, weighted;  // sums of e^(z - max) and of e^(z - max) * (z - max)
  float max, second;     // the largest logit and the largest of the others; -infinity if there are none
  int32_t first;         // the first token of max
  int32_t finite;        // 0 if a logit is NaN or +infinity
};

// Entries of a top list, and logits that a router reads, at most; of the drawn rest there is no limit.
constexpr int64_t topMax = 1024;

// How to draw after a row; as tr_request says.
struct Draw {
  float temperature, topP, minP;
  int32_t topK, top;
  int32_t biases, firstBias;
  int32_t request;  // that the row is of
  uint64_t random;
};

// Rows that are sampled after: heads.
struct Heads {
  float* logits;  // [rows][stride]; biases are added for a while
  int64_t stride, vocab, samplable;
  const Draw* draws;
  const tr_bias* biases;
  float* saved;             // [biases]: logits before them
  ChunkStatistics* chunks;  // [rows][chunksOf(vocab)]
  tr_result* results;       // [rows]
  tr_candidate* top;        // [rows][topStride]
  int64_t topStride;
  float* routerTop;  // [rows][routerTopCount]: the largest logits as they are, or null
  int64_t routerTopCount;
};

// Fills results and lists of rows whose logits are there; scores are NaN. A row that is not finite has token
// -1, and NaN in all else. threads, of a block for each row, is a multiple of 32 up to 1024: a token that is
// drawn does not depend on it, but for the order of sums.
cudaError_t describe(const Heads& h, int64_t rows, int threads, cudaStream_t stream);

// Bound on |logSumExp - exact| over max(1, |exact|), and on the other statistics' absolute errors.
constexpr double statisticsTolerance = 4e-6;

// A row as it should be, but for top lists and scores, in double, on the host.
tr_result resultReference(const float* z, int64_t vocab, int64_t samplable, const Draw& draw,
                          const tr_bias* biases);

}  // namespace cuda
