// Memory that a model's steps work in.
#pragma once

#include <stdint.h>

#include "../../exec/native/carver.h"
#include "../../exec/native/native.h"
#include "../kernels/attention.h"
#include "../kernels/logits.h"
#include "shape.h"

namespace cuda {

// Requests of few rows have their segments dealt out to parts: at most partsMax each, for requests that have
// at most splitTiles tiles of 16 units, and as long as there is room for the partial results of so many
// requests.
constexpr int64_t partsMax = 32, splitTiles = 4, splitRequestsMax = 64;

// Pages that a step tells the device of in its own copy; more of them go before.
constexpr int64_t grantsMax = 1024;

// What goes to the device for a step, in one copy. Every array has the same place on both sides.
struct Inbox {
  int32_t *grantCount, *itemCount, *headItemCount;  // of one number
  tr_grant* grants;
  int32_t *tokens, *positions, *slots;  // by row
  int32_t* headRows;                    // by head: its row
  Draw* draws;                          // by head
  tr_bias* biases;
  AttentionItem *items, *headItems;  // of all rows, and of the last layer
};

// What comes back, in one copy.
struct Outbox {
  tr_result* results;  // by head
  tr_candidate* top;   // [head][top_max]
};

// Sizes that follow from shape and limits.
struct Sizes {
  int64_t rows, heads;  // of a step, at most, with padding
  int64_t tablePages;   // pages that a request can have
  int64_t items, headItems;
  int64_t partials, counters;
  int64_t chunks;                                          // of a row of logits
  int64_t hiddenStride, attendedStride, innerStride;       // of rows in bf16
  int64_t xStride, qkvStride, gateUpStride, logitsStride;  // of rows in fp32
  int64_t routerStride;                                    // of sums of the router
};

Sizes sizesOf(const Shape& shape, const tr_limits& limits);

// The router's.
struct RouterWork {
  uint16_t *joined, *logits, *narrow, *inner;  // bf16 rows
  int64_t joinedStride, logitsStride, narrowStride, innerStride;
  float *sums, *residual, *top;
};

// On the device: the cache, and what lies between the parts of a step.
struct Work {
  uint16_t* cache;         // keys and values in turn: [layer][2][page][kvHead][pageTokens * headStride]
  int64_t layerElements;   // of keys, or of values, with a page for padding
  int32_t* tables;         // [slot][tablePages], with a slot for padding
  float *cosines, *sines;  // [row][headDim / 2]
  float *x, *delta;        // [row][xStride]: the residual stream, and what is yet to be added to it
  uint16_t* inputs;        // [row][hiddenStride]: of qkv, gate and up, and of the head
  float* qkv;              // [row][qkvStride]
  uint16_t* q;             // [row][heads * headStride]
  uint16_t* attended;      // [row][attendedStride], zeros behind the heads
  float* gateUp;           // [row][gateUpStride]
  uint16_t* gated;         // [row][innerStride]
  float* partials;
  int32_t* counters;
  float* headX;             // [head][xStride]
  float* logits;            // [head][logitsStride]
  ChunkStatistics* chunks;  // [head][chunksOf(vocab)]
  float* saved;             // [bias]
  void* ltWorkspace;        // of cuBLASLt, if it is there and steps have rows for it
  RouterWork router;
  Inbox inbox;
  int64_t inboxBytes;
  Outbox outbox;
};

// On the host, where the device reads and writes it.
struct HostWork {
  Inbox inbox;
  Outbox outbox;
  uint16_t* hidden;  // [head][hiddenStride]
};

// Takes the cache, and then all other memory of the device.
void takeCache(native::Carver& carver, const Shape& shape, const tr_limits& limits, Work* work);
void takeWork(native::Carver& carver, const Shape& shape, const tr_limits& limits, Work* work);
void takeHostWork(native::Carver& carver, const Shape& shape, const tr_limits& limits, HostWork* work);

}  // namespace cuda
