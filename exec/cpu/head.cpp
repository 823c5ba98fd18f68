#include <float.h>
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "forward.h"

namespace cpu {

namespace {

// A result of which nothing but finite is sound.
tr_result unsound() {
  const float nan = NAN;
  return {-1, 0, nan, nan, nan, nan, nan, 0, double(nan)};
}

void widenRow(const uint16_t* halves, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i++) out[i] = widen(halves[i]);
}

}  // namespace

void Forward::head(int worker) {
  norm({headCount_, work_.headX}, work_.delta, weights_.layers.back().downBias, weights_.finalNorm,
       weights_.head, worker);
  barrier(worker);
  logits(worker);
  barrier(worker);
  const Range share = shareOf(headCount_, worker, workers_.count());
  for (int64_t h = share.begin; h < share.end; h++) finish(h, worker);
  if (router_) route(worker);
}

// Logits and what is to be said of them, chunk by chunk while they are near.
void Forward::logits(int worker) {
  static_assert(chunkLogits % blockColumns == 0, "a chunk is whole blocks");
  constexpr int64_t chunkBlocks = chunkLogits / blockColumns;
  const int64_t vocab = shape_.vocab(), chunks = chunksOf(vocab), blocks = weights_.head.blocks();
  for (Range r = workers_.take(chunks, 1, worker); r.begin < r.end; r = workers_.take(chunks, 1, worker)) {
    const int64_t begin = r.begin * chunkBlocks;
    const int64_t end = begin + chunkBlocks < blocks ? begin + chunkBlocks : blocks;
    multiply(path_, weights_.head, begin, end, work_.inputs, headCount_,
             work_.logits + r.begin * chunkLogits, work_.logitsStride);
    for (int64_t h = 0; h < headCount_; h++) {
      chunkOf(kernels_.logits, work_.logits + h * work_.logitsStride, vocab, r.begin,
              work_.chunks + h * chunks);
    }
  }
}

// Scores of all rows with a head; those that are not sound have none.
void Forward::route(int worker) {
  const int64_t hidden = shape_.hidden(), top = shape_.config.router_top;
  const RouterRows rows = {headCount_, work_.routerHidden, hidden, work_.routerEmbeddings, hidden,
                           work_.routerTop, top};
  barrier(worker);
  router_->evaluate(path_, workers_, worker, rows, work_.routerScratch, work_.routerScores);
  barrier(worker);
  if (worker != 0) return;
  for (int64_t h = 0; h < headCount_; h++) {
    tr_result& result = arguments_.results[work_.headOf[h]];
    if (result.finite) result.score = work_.routerScores[h];
  }
}

// What the router reads of a row.
void Forward::fillRouter(int64_t h, int32_t token, const float* z, Candidate* scratch) {
  const int64_t hidden = shape_.hidden(), top = shape_.config.router_top;
  widenRow(work_.inputs.row(h), hidden, work_.routerHidden + h * hidden);
  if (shape_.config.router != TR_ROUTER_R2R) return;
  columnOf(weights_.embedding, token < 0 ? 0 : token, work_.routerEmbeddings + h * hidden);
  const int64_t found = token < 0 ? 0 : topLogits(kernels_.logits, z, shape_.vocab(), top, scratch);
  for (int64_t i = 0; i < top; i++) work_.routerTop[h * top + i] = i < found ? scratch[i].logit : -INFINITY;
}

// Everything that is said of one row of logits.
void Forward::finish(int64_t h, int worker) {
  const int64_t request = work_.headOf[h], vocab = shape_.vocab(), hidden = shape_.hidden();
  float* z = work_.logits + h * work_.logitsStride;
  Candidate* scratch = work_.candidates + worker * vocab;
  if (arguments_.logits) memcpy(arguments_.logits + request * vocab, z, size_t(vocab) * sizeof(float));
  if (arguments_.hidden) {
    widenRow(work_.inputs.row(h), hidden, arguments_.hidden + request * hidden);
  }
  tr_result& result = arguments_.results[request];
  result = unsound();
  const LogitsStatistics s = merge(work_.chunks + h * chunksOf(vocab), vocab);
  const int32_t token = s.finite ? pick(request, z, s, scratch) : -1;
  if (router_) fillRouter(h, token, z, scratch);
  if (token < 0) return;
  result.token = token;
  result.finite = 1;
  result.log_probability = z[token] - s.logSumExp;
  result.top_probability = s.topProbability;
  result.margin = s.margin;
  result.entropy = s.entropy;
  result.log_sum_exp = s.logSumExp;
  result.top = listTop(request, z, s, scratch);
}

// The sampled token, -1 if there is nothing that may be sampled. The logits are as before in the end.
int32_t Forward::pick(int64_t request, float* z, const LogitsStatistics& statistics, Candidate* scratch) {
  const tr_request& r = arguments_.requests[request];
  const int64_t samplable = shape_.config.samplable;
  Candidate best = {statistics.maxLogit, statistics.token};
  bias(request, z);
  int64_t found = 1;
  if (r.biases > 0 || best.token >= samplable) found = topLogits(kernels_.logits, z, samplable, 1, &best);
  int32_t token = -1;
  if (found == 1) {
    token = best.token;
    const Sampling s = {r.temperature, r.top_k, r.top_p, r.min_p, r.random};
    if (r.temperature > 0) token = sample(kernels_.logits, z, samplable, s, best.logit, scratch);
  }
  restore(request, z);
  return token;
}

void Forward::bias(int64_t request, float* z) {
  const int64_t first = work_.firstBias[request];
  for (int64_t i = first; i < first + arguments_.requests[request].biases; i++) {
    float& logit = z[arguments_.biases[i].token];
    work_.savedLogits[i] = logit;
    // Two finite numbers: a sum that is too large stays a logit, and the largest.
    logit = fminf(logit + arguments_.biases[i].bias, FLT_MAX);
  }
}

// In reverse: a token may have several biases.
void Forward::restore(int64_t request, float* z) {
  const int64_t first = work_.firstBias[request];
  for (int64_t i = first + arguments_.requests[request].biases - 1; i >= first; i--) {
    z[arguments_.biases[i].token] = work_.savedLogits[i];
  }
}

int32_t Forward::listTop(int64_t request, const float* z, const LogitsStatistics& statistics,
                         Candidate* scratch) {
  const int32_t wanted = arguments_.requests[request].top;
  const int64_t count = topLogits(kernels_.logits, z, shape_.vocab(), wanted, scratch);
  tr_candidate* out = arguments_.top + request * limits_.top_max;
  for (int64_t i = 0; i < count; i++) out[i] = {scratch[i].logit - statistics.logSumExp, scratch[i].token};
  return int32_t(count);
}

}  // namespace cpu
