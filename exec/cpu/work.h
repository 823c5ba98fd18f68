// Memory that a model's steps work in.
#pragma once

#include <stdint.h>

#include "../native/carver.h"
#include "../native/native.h"
#include "attention.h"
#include "logits.h"
#include "matrix.h"
#include "shape.h"

namespace cpu {

using native::Carver;

// Blocks of gate and up, one of each, that a worker multiplies before it joins them.
constexpr int64_t gatePairs = 2;

// Work is what lies between steps (the cache and who has which page of it) and what one step fills. Rows are
// the tokens of a step, heads its rows that are sampled after, in the order of the requests.
struct Work {
  // The cache, keys and values in turn: [layer][2][page][kvHead][pageTokens * headStride].
  uint16_t* cache;
  int64_t layerElements;  // of keys, or of values
  int64_t tablePages;     // pages that a request can have
  int32_t* pageTables;    // [slot][tablePages], -1: not granted
  uint64_t* lastStep;     // [slot]: the number of the last step that named it
  uint64_t steps;

  // By request.
  AttentionRequest *requests, *headRequests;
  int32_t* headOf;        // [head]: its request
  int64_t* firstBias;     // [request]
  float* savedLogits;     // [bias]

  // By row.
  int32_t* positions;
  const int32_t** tables;  // of pages
  float *cosines, *sines;  // [row][headDim / 2]
  float *x, *delta;        // [row][xStride]: the residual stream, and what is yet to be added to it
  int64_t xStride;
  float* qkv;              // [row][qkvStride]: queries, keys and values of all heads
  int64_t qkvStride;
  float* attended;         // [row][heads * headStride]
  Activations inputs;      // of qkv, o, gate and up, and of the head
  Activations gated;       // of down

  // By head.
  float* headX;             // [head][xStride]
  float* logits;            // [head][logitsStride]
  int64_t logitsStride;
  ChunkStatistics* chunks;  // [head][chunksOf(vocab)]

  // By head, for the router.
  float *routerHidden, *routerEmbeddings;  // [head][hidden]
  float* routerTop;                        // [head][router_top]: largest logits
  double* routerScores;
  char* routerScratch;

  // By worker.
  float* gateUp;          // [row][gateUpStride]
  int64_t gateUpElements;
  Candidate* candidates;  // [vocab]

  static constexpr int64_t gateUpStride = 2 * gatePairs * blockColumns;
};

// Takes the cache, and then all other memory.
void takeCache(Carver& carver, const Shape& shape, const tr_limits& limits, Work* work);
void takeWork(Carver& carver, const Shape& shape, const tr_limits& limits, int workers, Work* work);

}  // namespace cpu
