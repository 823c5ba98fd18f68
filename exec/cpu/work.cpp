#include "work.h"

#include <memory>

namespace cpu {

namespace {

void takeRouter(Carver& carver, const Shape& shape, int64_t heads, Work* w) {
  w->routerHidden = carver.take<float>(heads * shape.hidden());
  if (shape.config.router == TR_ROUTER_R2R) {
    w->routerEmbeddings = carver.take<float>(heads * shape.hidden());
    w->routerTop = carver.take<float>(heads * shape.config.router_top);
  }
  w->routerScores = carver.take<double>(heads);
  // The shape was checked; no memory here shows again where the router itself is made.
  std::unique_ptr<Router> router;
  if (Router::make(routerShapeOf(shape), &router) == 0) {
    w->routerScratch = carver.take<char>(router->scratchBytes(heads));
  }
}

}  // namespace

void takeCache(Carver& carver, const Shape& shape, const tr_limits& limits, Work* work) {
  const int64_t perToken = shape.kvHeads() * shape.headStride();
  int64_t all;
  if (__builtin_mul_overflow(int64_t(limits.pages) * limits.page_tokens, perToken, &work->layerElements) ||
      __builtin_mul_overflow(work->layerElements, 2 * shape.layers(), &all)) {
    all = carver.bytesMax;
  }
  work->cache = carver.take<uint16_t>(all);
}

void takeWork(Carver& carver, const Shape& shape, const tr_limits& limits, int workers, Work* w) {
  const int64_t rows = limits.rows_max, requests = limits.requests_max;
  w->tablePages = (int64_t(limits.context_max) + limits.page_tokens - 1) / limits.page_tokens;
  w->pageTables = carver.take<int32_t>(limits.slots * w->tablePages);
  w->lastStep = carver.take<uint64_t>(limits.slots);
  w->requests = carver.take<AttentionRequest>(requests);
  w->headRequests = carver.take<AttentionRequest>(requests);
  w->headOf = carver.take<int32_t>(requests);
  w->firstBias = carver.take<int64_t>(requests);
  w->savedLogits = carver.take<float>(limits.biases_max);

  w->positions = carver.take<int32_t>(rows);
  w->tables = carver.take<const int32_t*>(rows);
  w->cosines = carver.take<float>(rows * (shape.headDim() / 2));
  w->sines = carver.take<float>(rows * (shape.headDim() / 2));
  w->xStride = packedShape(shape.hidden(), 1).paddedColumns();
  w->x = carver.take<float>(rows * w->xStride);
  w->delta = carver.take<float>(rows * w->xStride);
  w->qkvStride = packedShape(shape.headsPacked() * shape.headStride(), 1).paddedColumns();
  w->qkv = carver.take<float>(rows * w->qkvStride);
  w->attended = carver.take<float>(rows * shape.heads() * shape.headStride());
  const int64_t depth = shape.hidden() > shape.attended() ? shape.hidden() : shape.attended();
  // Heads may outnumber rows_max in the limits, never in a step.
  w->inputs = takeActivations(carver, shape.format(), rows, depth);
  w->gated = takeActivations(carver, shape.format(), rows, shape.intermediate());

  w->headX = carver.take<float>(requests * w->xStride);
  w->logitsStride = packedShape(shape.vocab(), 1).paddedColumns();
  w->logits = carver.take<float>(requests * w->logitsStride);
  w->chunks = carver.take<ChunkStatistics>(requests * chunksOf(shape.vocab()));

  w->routerHidden = w->routerEmbeddings = w->routerTop = nullptr;
  w->routerScores = nullptr;
  w->routerScratch = nullptr;
  if (shape.router()) takeRouter(carver, shape, requests, w);

  w->gateUpElements = rows * Work::gateUpStride;
  w->gateUp = carver.take<float>(workers * w->gateUpElements);
  w->candidates = carver.take<Candidate>(workers * shape.vocab());
}

}  // namespace cpu
