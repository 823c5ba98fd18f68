#include "forward.h"

#include <math.h>

#include <algorithm>

#include "../kernels/pages.h"
#include "../kernels/router.h"

namespace cuda {

namespace {

// Adds launches one after another until one fails.
class Launches {
 public:
  template <class F>
  Launches& then(F add) {
    if (result_ == cudaSuccess) result_ = add();
    return *this;
  }
  cudaError_t result() const { return result_; }

 private:
  cudaError_t result_ = cudaSuccess;
};

// Threads that describe a row of logits.
int describeThreads(int64_t vocab) { return vocab > 8192 ? 1024 : vocab > 1024 ? 256 : 64; }

}  // namespace

cudaError_t Forward::operator()() const {
  const Inbox& in = work.inbox;
  Launches launches;
  launches.then([&] {
    const Grants g = {in.grants, in.grantCount, work.tables, sizes.tablePages};
    return applyGrants(g, grantsMax, stream);
  });
  launches.then([&] {
    const Embed e = {in.tokens,
                     in.positions,
                     weights.embedding.weights,
                     weights.embedding.stride(),
                     shape.hidden(),
                     work.x,
                     sizes.xStride,
                     weights.frequencies,
                     shape.headDim() / 2,
                     double(shape.config.rope_factor),
                     work.cosines,
                     work.sines};
    return embed(e, rows, stream);
  });
  for (int64_t l = 0; l < shape.layers(); l++) launches.then([&] { return layer(l); });
  if (heads > 0) launches.then([&] { return head(); });
  if (heads > 0 && shape.router()) launches.then([&] { return route(); });
  return launches.result();
}

cudaError_t Forward::multiply(const uint16_t* x, int64_t xStride, const Matrix& matrix, int64_t count,
                              float* y, int64_t yStride) const {
  const Product product = {x, xStride, matrix, y, yStride};
  if (lt.takes(count)) {
    const cudaError_t result = lt.multiply(product, count, stream);
    if (result != cudaErrorNotSupported) return result;
  }
  return multiplyFew(product, count, stream);
}

KVPages Forward::pages(int64_t l) const {
  uint16_t* keys = work.cache + 2 * l * work.layerElements;
  return {keys, keys + work.layerElements, shape.kvHeads(), shape.headStride(), limits.page_tokens};
}

cudaError_t Forward::layer(int64_t l) const {
  Launches launches;
  launches.then([&] { return toKeysAndValues(l); });
  // After the last layer's keys and values only rows with a head matter.
  if (last(l) && heads == 0) return launches.result();
  return launches.then([&] { return attendLayer(l); }).then([&] { return mlp(l); }).result();
}

cudaError_t Forward::toKeysAndValues(int64_t l) const {
  const LayerWeights& w = weights.layers[size_t(l)];
  const Inbox& in = work.inbox;
  const float* before = l > 0 ? work.delta : nullptr;
  const float* bias = l > 0 ? weights.layers[size_t(l) - 1].downBias : nullptr;
  const Norm n = {work.x,         work.x,        nullptr,           before,
                  bias,           sizes.xStride, w.inputNorm,       shape.config.norm_epsilon,
                  shape.hidden(), work.inputs,   sizes.hiddenStride};
  const Rotate r = {
      work.qkv,     sizes.qkvStride, w.qkvBias,     w.qNorm,         w.kNorm, shape.config.norm_epsilon,
      work.cosines, work.sines,      shape.heads(), shape.headDim(), work.q,  pages(l),
      in.positions, in.slots,        work.tables,   sizes.tablePages};
  return Launches()
      .then([&] { return norm(n, rows, stream); })
      .then([&] { return multiply(work.inputs, sizes.hiddenStride, w.qkv, rows, work.qkv, sizes.qkvStride); })
      .then([&] { return rotate(r, rows, stream); })
      .result();
}

// In the last layer rows with a head move together.
cudaError_t Forward::attendLayer(int64_t l) const {
  const LayerWeights& w = weights.layers[size_t(l)];
  const Inbox& in = work.inbox;
  const bool few = last(l);
  const int64_t count = few ? heads : rows, itemsMax = few ? sizes.headItems : sizes.items;
  const Attention a = {pages(l),
                       work.tables,
                       sizes.tablePages,
                       work.q,
                       work.attended,
                       sizes.attendedStride,
                       shape.heads(),
                       weights.windows[size_t(l)],
                       float(1 / sqrt(double(shape.headDim()))),
                       few ? in.headItems : in.items,
                       few ? in.headItemCount : in.itemCount,
                       work.partials,
                       sizes.partials,
                       work.counters,
                       sizes.counters};
  // With heads of 128 there is room for two blocks on a multiprocessor, with smaller ones for more.
  const int64_t blocks = std::max<int64_t>(4 * int64_t(multiprocessors) / shape.kvHeads(), 1);
  const Norm n = {work.x,
                  few ? work.headX : work.x,
                  few ? in.headRows : nullptr,
                  work.delta,
                  w.oBias,
                  sizes.xStride,
                  w.postNorm,
                  shape.config.norm_epsilon,
                  shape.hidden(),
                  work.inputs,
                  sizes.hiddenStride};
  return Launches()
      .then([&] { return attend(a, std::min(blocks, itemsMax), stream); })
      .then([&] {
        return multiply(work.attended, sizes.attendedStride, w.o, count, work.delta, sizes.xStride);
      })
      .then([&] { return norm(n, count, stream); })
      .result();
}

cudaError_t Forward::mlp(int64_t l) const {
  const LayerWeights& w = weights.layers[size_t(l)];
  const int64_t count = last(l) ? heads : rows;
  const SwiGLU s = {work.gateUp,          sizes.gateUpStride, w.gateUpBias,
                    shape.intermediate(), work.gated,         sizes.innerStride};
  return Launches()
      .then([&] {
        return multiply(work.inputs, sizes.hiddenStride, w.gateUp, count, work.gateUp, sizes.gateUpStride);
      })
      .then([&] { return swiglu(s, count, stream); })
      .then([&] { return multiply(work.gated, sizes.innerStride, w.down, count, work.delta, sizes.xStride); })
      .result();
}

cudaError_t Forward::head() const {
  const Inbox& in = work.inbox;
  const Norm n = {work.headX,
                  work.headX,
                  nullptr,
                  work.delta,
                  weights.layers.back().downBias,
                  sizes.xStride,
                  weights.finalNorm,
                  shape.config.norm_epsilon,
                  shape.hidden(),
                  work.inputs,
                  sizes.hiddenStride};
  const Heads h = {work.logits,
                   sizes.logitsStride,
                   shape.vocab(),
                   shape.config.samplable,
                   in.draws,
                   in.biases,
                   work.saved,
                   work.chunks,
                   work.outbox.results,
                   work.outbox.top,
                   limits.top_max,
                   work.router.top,
                   shape.r2r() ? shape.config.router_top : 0};
  return Launches()
      .then([&] { return norm(n, heads, stream); })
      .then([&] {
        return multiply(work.inputs, sizes.hiddenStride, weights.head, heads, work.logits,
                        sizes.logitsStride);
      })
      .then([&] { return describe(h, heads, describeThreads(shape.vocab()), stream); })
      .result();
}

cudaError_t Forward::route() const {
  const RouterWeights& w = weights.router;
  const RouterWork& r = work.router;
  RouterScore s = {
      work.inputs, sizes.hiddenStride, nullptr, sizes.routerStride, nullptr, shape.hidden(), w.out,
      nullptr,     work.outbox.results};
  if (shape.config.router == TR_ROUTER_COLLM) return routerScore(s, heads, stream);
  if (shape.r2r()) return r2r();
  const Linear& first = w.blocks[0].first;
  s.sums = r.sums;
  s.sumsBias = first.bias;
  s.width = shape.config.router_width;
  s.bias = w.outBias;
  return Launches()
      .then([&] {
        return multiply(work.inputs, sizes.hiddenStride, first.matrix, heads, r.sums, sizes.routerStride);
      })
      .then([&] { return routerScore(s, heads, stream); })
      .result();
}

cudaError_t Forward::r2r() const {
  const RouterWeights& w = weights.router;
  const RouterWork& r = work.router;
  const tr_model_config& c = shape.config;
  const int64_t width = c.router_width, hidden = shape.hidden(), stride = sizes.routerStride;
  Launches launches;
  auto product = [&](const uint16_t* x, int64_t xStride, const Linear& linear) {
    launches.then([&] { return multiply(x, xStride, linear.matrix, heads, r.sums, stride); });
  };
  auto rounded = [&](const Linear& linear, int64_t count, bool gelu, uint16_t* out, int64_t outStride,
                     int64_t outWidth) {
    const RouterRound round = {r.sums, stride, linear.bias, count, gelu, out, outStride, outWidth};
    launches.then([&] { return routerRound(round, heads, stream); });
  };
  // Adds a product to the residual stream, and norms that for the next one, or for the score.
  auto added = [&](const Linear& linear, bool first, const RouterBlock* next) {
    const RouterNorm n = {r.sums,
                          stride,
                          linear.bias,
                          first,
                          r.residual,
                          stride,
                          width,
                          next ? next->norm : w.outNorm,
                          next ? next->normBias : w.outNormBias,
                          next ? r.narrow : nullptr,
                          r.narrowStride,
                          w.out,
                          w.outBias,
                          work.outbox.results};
    launches.then([&] { return routerNorm(n, heads, stream); });
  };
  launches.then([&] {
    const RouterInputs inputs = {work.inputs,
                                 sizes.hiddenStride,
                                 hidden,
                                 weights.embedding.weights,
                                 weights.embedding.stride(),
                                 work.outbox.results,
                                 r.top,
                                 c.router_top,
                                 r.joined,
                                 r.joinedStride,
                                 r.logits,
                                 r.logitsStride};
    return routerInputs(inputs, heads, stream);
  });
  product(r.logits, r.logitsStride, w.top);
  rounded(w.top, hidden, false, r.joined + 2 * hidden, r.joinedStride, hidden);
  product(r.joined, r.joinedStride, w.combined);
  rounded(w.combined, width, false, r.narrow, r.narrowStride, r.narrowStride);
  product(r.narrow, r.narrowStride, w.in);
  added(w.in, true, &w.blocks[0]);
  for (size_t i = 0; i < w.blocks.size(); i++) {
    const RouterBlock& b = w.blocks[i];
    product(r.narrow, r.narrowStride, b.first);
    rounded(b.first, c.router_expanded, true, r.inner, r.innerStride, r.innerStride);
    product(r.inner, r.innerStride, b.second);
    added(b.second, false, i + 1 < w.blocks.size() ? &w.blocks[i + 1] : nullptr);
  }
  return launches.result();
}

}  // namespace cuda
