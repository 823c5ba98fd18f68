// A model of random weights behind the C ABI, and the arrays of its steps.
#pragma once

#include <math.h>

#include <vector>

#include "../../exec/native/native.h"
#include "../device/backend.h"
#include "check.h"

namespace check {

inline const tr_backend& backend() { return *static_cast<const tr_backend*>(cuda_backend()); }

#define CHECK_TR(call, error) CHECK((call) == TR_OK, "%s", (error).text)

// What two kinds of models of one size have in common.
inline tr_model_config qwen3(int32_t layers, int32_t hidden, int32_t heads, int32_t kvHeads, int32_t headDim,
                             int32_t intermediate, int32_t vocab, bool tied) {
  tr_model_config c = {};
  c.size = int32_t(sizeof c);
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.kv_heads = kvHeads;
  c.head_dim = headDim;
  c.intermediate = intermediate;
  c.vocab = c.samplable = vocab;
  c.positions = 40960;
  c.tied = tied;
  c.qk_norm = 1;
  c.weights = TR_WEIGHTS_BF16;
  c.norm_epsilon = 1e-6f;
  c.rope_factor = 1;
  return c;
}

inline tr_limits limitsOf(int32_t slots, int32_t context, int32_t rows) {
  constexpr int32_t pageTokens = 16;
  tr_limits l = {};
  l.size = int32_t(sizeof l);
  l.slots = l.requests_max = slots;
  l.page_tokens = pageTokens;
  l.pages = slots * ((context + pageTokens - 1) / pageTokens);
  l.context_max = context;
  l.rows_max = rows;
  l.top_max = 3;
  l.biases_max = 4;
  return l;
}

class Opened {
 public:
  explicit Opened(const char* kernels, int32_t multiprocessors = 0) {
    tr_device_options o = {};
    o.size = int32_t(sizeof o);
    o.threads = multiprocessors;
    snprintf(o.kernels, sizeof o.kernels, "%s", kernels);
    tr_error error;
    CHECK_TR(backend().device_open(&o, &device_, &error), error);
  }
  ~Opened() { backend().device_close(device_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  tr_device* device() const { return device_; }

 private:
  tr_device* device_ = nullptr;
};

// window: tokens that every layer sees, 0 for all.
class Rig {
 public:
  Rig(tr_device* device, const tr_model_config& config, const tr_limits& l, int32_t window = 0)
      : limits(l), config_(config) {
    tokens.reserve(size_t(l.rows_max));
    requests.reserve(size_t(l.slots));
    grants.reserve(size_t(l.pages));
    results.resize(size_t(l.slots));
    top_.resize(size_t(l.slots * l.top_max));
    CHECK_TR(backend().model_new(device, &config, &model_, &error), error);
    put(window);
    took.size = int32_t(sizeof took);
    CHECK_TR(backend().model_plan(model_, &limits, &took, &error), error);
  }
  ~Rig() { backend().model_close(model_); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void begin() {
    tokens.clear();
    requests.clear();
    grants.clear();
  }

  // rows more tokens of a slot, at start, with all its pages up to there granted anew.
  void add(int32_t slot, int32_t start, int32_t rows) {
    const int32_t own = limits.pages / limits.slots;
    for (int32_t i = 0; i * limits.page_tokens < start + rows; i++) {
      grants.push_back({slot, i, slot * own + i});
    }
    for (int32_t i = 0; i < rows; i++) tokens.push_back((7 * slot + start + i) % config_.vocab);
    tr_request r = {};
    r.slot = slot;
    r.start = start;
    r.rows = rows;
    r.head = 1;
    r.top = limits.top_max;
    r.top_p = 1;
    requests.push_back(r);
  }

  int32_t run() {
    const tr_step_counts counts = {int32_t(sizeof counts), int32_t(requests.size()), int32_t(grants.size()),
                                   0};
    info.size = int32_t(sizeof info);
    return backend().model_step(model_, &counts, tokens.data(), requests.data(), nullptr, grants.data(),
                                nullptr, results.data(), top_.data(), nullptr, nullptr, &info, &error);
  }

  void must() { CHECK_TR(run(), error); }

  tr_graphs graphs() const {
    tr_graphs g = {};
    g.size = int32_t(sizeof g);
    backend().model_graphs(model_, &g);
    return g;
  }

  tr_limits limits;
  tr_needs took = {};
  std::vector<int32_t> tokens;
  std::vector<tr_request> requests;
  std::vector<tr_grant> grants;
  std::vector<tr_result> results;
  tr_step_info info = {};
  tr_error error = {};

 private:
  // Numbers of a deviation of 1 / sqrt(columns), as model make gives them; norms are near 1.
  void random(int32_t tensor, int32_t layer, int64_t rows, int64_t columns) {
    const double unit = 37837.0;  // the deviation of the sum that native.h says
    const double scale = rows == 1 ? 0.1 / unit : 1 / sqrt(double(columns)) / unit;
    CHECK_TR(backend().model_random(model_, tensor, layer, rows, columns, uint64_t(tensor * 1000 + layer),
                                    rows == 1, scale, &error),
             error);
  }

  void put(int32_t window) {
    const tr_model_config& c = config_;
    random(TR_EMBEDDING, 0, c.vocab, c.hidden);
    if (!c.tied) random(TR_HEAD, 0, c.vocab, c.hidden);
    random(TR_FINAL_NORM, 0, 1, c.hidden);
    const int32_t queries = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
    for (int32_t l = 0; l < c.layers; l++) {
      random(TR_INPUT_NORM, l, 1, c.hidden);
      random(TR_Q, l, queries, c.hidden);
      random(TR_K, l, keys, c.hidden);
      random(TR_V, l, keys, c.hidden);
      random(TR_Q_NORM, l, 1, c.head_dim);
      random(TR_K_NORM, l, 1, c.head_dim);
      random(TR_O, l, c.hidden, queries);
      random(TR_POST_NORM, l, 1, c.hidden);
      random(TR_GATE, l, c.intermediate, c.hidden);
      random(TR_UP, l, c.intermediate, c.hidden);
      random(TR_DOWN, l, c.hidden, c.intermediate);
    }
    std::vector<double> frequencies;
    for (int32_t i = 0; i < c.head_dim / 2; i++) frequencies.push_back(pow(1e6, -2.0 * i / c.head_dim));
    CHECK_TR(backend().model_put(model_, TR_ROPE_FREQUENCIES, 0, TR_F64, 1, int64_t(frequencies.size()),
                                 frequencies.data(), &error),
             error);
    const std::vector<int32_t> windows(size_t(c.layers), window);
    CHECK_TR(backend().model_put(model_, TR_WINDOWS, 0, TR_I32, 1, c.layers, windows.data(), &error), error);
  }

  tr_model_config config_;
  tr_model* model_ = nullptr;
  std::vector<tr_candidate> top_;
};

}  // namespace check
