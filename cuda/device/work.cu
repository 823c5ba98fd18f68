#include "work.h"

#include <algorithm>

#include "lt.h"

namespace cuda {

using native::Carver;

namespace {

int64_t dividedUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

int64_t roundedUp(int64_t n, int64_t to) { return dividedUp(n, to) * to; }

int64_t paddedRows(int64_t rows) { return roundedUp(rows, skinnyRows); }

void divideInbox(Carver& carver, const Sizes& s, const tr_limits& limits, Inbox* in) {
  in->grantCount = carver.take<int32_t>(1);
  in->itemCount = carver.take<int32_t>(1);
  in->headItemCount = carver.take<int32_t>(1);
  in->grants = carver.take<tr_grant>(grantsMax);
  in->tokens = carver.take<int32_t>(s.rows);
  in->positions = carver.take<int32_t>(s.rows);
  in->slots = carver.take<int32_t>(s.rows);
  in->headRows = carver.take<int32_t>(s.heads);
  in->draws = carver.take<Draw>(s.heads);
  in->biases = carver.take<tr_bias>(limits.biases_max);
  in->items = carver.take<AttentionItem>(s.items);
  in->headItems = carver.take<AttentionItem>(s.headItems);
}

// Returns the bytes of all of it, which are copied together from its first part on.
int64_t takeInbox(Carver& carver, const Sizes& s, const tr_limits& limits, Inbox* in) {
  Carver counted(nullptr, false);
  divideInbox(counted, s, limits, in);
  Carver parts(carver.take<char>(counted.bytes()), false);
  divideInbox(parts, s, limits, in);
  return counted.bytes();
}

void takeOutbox(Carver& carver, const Sizes& s, const tr_limits& limits, Outbox* out) {
  out->results = carver.take<tr_result>(s.heads);
  out->top = carver.take<tr_candidate>(s.heads * limits.top_max);
}

void takeRouter(Carver& carver, const Shape& shape, const Sizes& s, RouterWork* w) {
  const tr_model_config& c = shape.config;
  const int64_t rows = paddedRows(s.heads);
  *w = {};
  w->sums = carver.take<float>(rows * s.routerStride);
  if (!shape.r2r()) return;
  w->joinedStride = paddedDepth(3 * shape.hidden());
  w->logitsStride = paddedDepth(c.router_top);
  w->narrowStride = paddedDepth(c.router_width);
  w->innerStride = paddedDepth(c.router_expanded);
  w->joined = carver.take<uint16_t>(rows * w->joinedStride);
  w->logits = carver.take<uint16_t>(rows * w->logitsStride);
  w->narrow = carver.take<uint16_t>(rows * w->narrowStride);
  w->inner = carver.take<uint16_t>(rows * w->innerStride);
  w->residual = carver.take<float>(rows * s.routerStride);
  w->top = carver.take<float>(rows * c.router_top);
}

}  // namespace

Sizes sizesOf(const Shape& shape, const tr_limits& l) {
  Sizes s = {};
  // A graph's padding may go beyond what a step is given.
  s.rows = paddedRows(std::max<int64_t>(l.rows_max, 1));
  s.heads = paddedRows(std::min<int64_t>(l.requests_max, l.rows_max));
  s.tablePages = dividedUp(l.context_max, l.page_tokens);
  const int64_t requests = std::min(l.requests_max, l.rows_max);
  const int64_t segments = dividedUp(l.context_max, segmentTokens), parts = std::min(segments, partsMax);
  const int64_t splits = parts > 1 ? std::min(requests, splitRequestsMax) * splitTiles * parts : 0;
  s.items = dividedUp(l.rows_max * shape.group(), unitsMax) + requests + splits;
  s.headItems = requests * dividedUp(shape.group(), unitsMax) + splits;
  s.partials = std::max<int64_t>(splits, 1);
  s.counters = s.partials;
  s.chunks = chunksOf(shape.vocab());
  s.hiddenStride = paddedDepth(shape.hidden());
  s.attendedStride = paddedDepth(shape.attended());
  s.innerStride = paddedDepth(shape.intermediate());
  s.xStride = paddedColumns(shape.hidden());
  s.qkvStride = paddedColumns(shape.headsPacked() * shape.headStride());
  s.gateUpStride = paddedColumns(2 * shape.intermediate());
  s.logitsStride = paddedColumns(shape.vocab());
  const tr_model_config& c = shape.config;
  const int64_t widest = std::max({shape.r2r() ? c.hidden : 0, c.router_width, c.router_expanded, 1});
  s.routerStride = paddedColumns(widest);
  return s;
}

void takeCache(Carver& carver, const Shape& shape, const tr_limits& limits, Work* w) {
  const int64_t perToken = shape.kvHeads() * shape.headStride();
  int64_t all;
  if (__builtin_mul_overflow((int64_t(limits.pages) + 1) * limits.page_tokens, perToken, &w->layerElements) ||
      __builtin_mul_overflow(w->layerElements, 2 * shape.layers(), &all)) {
    all = carver.bytesMax;
  }
  w->cache = carver.take<uint16_t>(all);
}

void takeWork(Carver& carver, const Shape& shape, const tr_limits& limits, Work* w) {
  const Sizes s = sizesOf(shape, limits);
  const int64_t heads = paddedRows(s.heads);
  w->inboxBytes = takeInbox(carver, s, limits, &w->inbox);
  takeOutbox(carver, s, limits, &w->outbox);
  w->tables = carver.take<int32_t>((int64_t(limits.slots) + 1) * s.tablePages);
  w->cosines = carver.take<float>(s.rows * (shape.headDim() / 2));
  w->sines = carver.take<float>(s.rows * (shape.headDim() / 2));
  w->x = carver.take<float>(s.rows * s.xStride);
  w->delta = carver.take<float>(s.rows * s.xStride);
  w->inputs = carver.take<uint16_t>(s.rows * s.hiddenStride);
  w->qkv = carver.take<float>(s.rows * s.qkvStride);
  w->q = carver.take<uint16_t>(s.rows * s.attendedStride);
  w->attended = carver.take<uint16_t>(s.rows * s.attendedStride);
  w->gateUp = carver.take<float>(s.rows * s.gateUpStride);
  w->gated = carver.take<uint16_t>(s.rows * s.innerStride);
  w->partials = carver.take<float>(shape.kvHeads() * s.partials * partialFloats(shape.headStride()));
  w->counters = carver.take<int32_t>(shape.kvHeads() * s.counters);
  w->headX = carver.take<float>(heads * s.xStride);
  w->logits = carver.take<float>(heads * s.logitsStride);
  w->chunks = carver.take<ChunkStatistics>(heads * s.chunks);
  w->saved = carver.take<float>(limits.biases_max);
  w->ltWorkspace = carver.take<char>(limits.rows_max > skinnyRows ? ltWorkspaceBytes() : 0);
  w->router = {};
  if (shape.router()) takeRouter(carver, shape, s, &w->router);
}

void takeHostWork(Carver& carver, const Shape& shape, const tr_limits& limits, HostWork* w) {
  const Sizes s = sizesOf(shape, limits);
  takeInbox(carver, s, limits, &w->inbox);
  takeOutbox(carver, s, limits, &w->outbox);
  w->hidden = carver.take<uint16_t>(s.heads * s.hiddenStride);
}

}  // namespace cuda
