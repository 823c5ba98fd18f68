// Runs whole steps of small models through the C ABI: arrays of exactly the size that it asks for, and not
// one allocation in a step.
#pragma once

#include <string.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "../../native/native.h"
#include "../backend.h"
#include "check.h"

// Of the sanitizers' run-time library, which GCC has no header for.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));

namespace steps {

static std::atomic<int64_t> allocations{0};

static void countAllocation(const volatile void*, size_t) { allocations++; }
static void ignoreFree(const volatile void*) {}

struct Rig {
  const tr_backend* backend = static_cast<const tr_backend*>(cpu_backend());
  tr_error error = {};
  tr_device* device = nullptr;
  tr_model* model = nullptr;
  tr_model_config config = {};
  tr_limits limits = {};

  void ok(int32_t status) {
    if (status != TR_OK) fprintf(stderr, "%s\n", error.text);
    CHECK(status == TR_OK);
  }

  template <class T>
  void put(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns, const T* data) {
    ok(backend->model_put(model, tensor, layer, type, rows, columns, data, &error));
  }

  void put(int32_t tensor, int32_t layer, int64_t rows, int64_t columns) {
    Numbers numbers(uint32_t(tensor * 97 + layer));
    put(tensor, layer, TR_F32, rows, columns, numbers.take(size_t(rows * columns)).data());
  }

  void load(const char* kernels, int32_t threads, int32_t weights);
  void putAll();
  void step(const std::vector<tr_request>& requests, const std::vector<tr_bias>& biases);
  ~Rig() {
    backend->model_close(model);
    backend->device_close(device);
  }
};

inline void Rig::load(const char* kernels, int32_t threads, int32_t weights) {
  tr_device_options options = {};
  options.size = int32_t(sizeof options);
  options.threads = threads;
  strcpy(options.kernels, kernels);
  ok(backend->device_open(&options, &device, &error));
  config.size = int32_t(sizeof config);
  config.layers = 2;
  config.hidden = 40;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 12;
  config.intermediate = 70;
  config.vocab = 101;
  config.samplable = 99;
  config.positions = 64;
  config.qkv_bias = config.output_bias = config.mlp_bias = config.qk_norm = 1;
  config.weights = weights;
  config.norm_epsilon = 1e-6f;
  config.rope_factor = 1;
  config.router = TR_ROUTER_COLLM;
  limits = {int32_t(sizeof limits), 3, 9, 16, 48, 30, 3, 2, 3, 0};
  tr_needs said = {}, took = {};
  said.size = took.size = int32_t(sizeof said);
  ok(backend->probe(device, &config, &limits, &said, &error));
  ok(backend->model_new(device, &config, &model, &error));
  CHECK(backend->model_plan(model, &limits, &took, &error) == TR_INVALID);  // nothing was put yet
  putAll();
  ok(backend->model_plan(model, &limits, &took, &error));
  CHECK(memcmp(&said, &took, sizeof said) == 0);
}

inline void Rig::putAll() {
  const int64_t hidden = config.hidden, q = config.heads * config.head_dim, inner = config.intermediate;
  const int64_t kv = config.kv_heads * config.head_dim;
  put(TR_EMBEDDING, 0, config.vocab, hidden);
  put(TR_HEAD, 0, config.vocab, hidden);
  put(TR_FINAL_NORM, 0, 1, hidden);
  for (int32_t l = 0; l < config.layers; l++) {
    for (int32_t norm : {TR_INPUT_NORM, TR_POST_NORM, TR_O_BIAS, TR_DOWN_BIAS}) put(norm, l, 1, hidden);
    for (int32_t norm : {TR_Q_NORM, TR_K_NORM}) put(norm, l, 1, config.head_dim);
    for (int32_t bias : {TR_GATE_BIAS, TR_UP_BIAS}) put(bias, l, 1, inner);
    put(TR_Q, l, q, hidden);
    put(TR_Q_BIAS, l, 1, q);
    for (int32_t matrix : {TR_K, TR_V}) put(matrix, l, kv, hidden);
    for (int32_t bias : {TR_K_BIAS, TR_V_BIAS}) put(bias, l, 1, kv);
    put(TR_O, l, hidden, q);
    for (int32_t matrix : {TR_GATE, TR_UP}) put(matrix, l, inner, hidden);
    put(TR_DOWN, l, hidden, inner);
  }
  const double frequencies[] = {1, 0.5, 0.25, 0.1, 0.01, 0.001};
  const int32_t windows[] = {0, 5};
  put(TR_ROPE_FREQUENCIES, 0, TR_F64, 1, 6, frequencies);
  put(TR_WINDOWS, 0, TR_I32, 1, 2, windows);
  put(TR_ROUTER_OUT, 0, 1, hidden);
}

inline void Rig::step(const std::vector<tr_request>& requests, const std::vector<tr_bias>& biases) {
  const size_t n = requests.size();
  std::vector<int32_t> tokens;
  for (const tr_request& r : requests) {
    for (int32_t i = 0; i < r.rows; i++) tokens.push_back((r.slot * 31 + r.start + i) % config.vocab);
  }
  // Slot s has pages s, s + 3 and s + 6.
  std::vector<tr_grant> grants;
  for (int32_t i = 0; i < limits.pages; i++) grants.push_back({i % 3, i / 3, i});
  const tr_step_counts counts = {int32_t(sizeof counts), int32_t(n), int32_t(grants.size()), 0};
  std::vector<tr_result> results(n);
  std::vector<tr_candidate> top(n * size_t(limits.top_max));
  std::vector<float> hidden(n * size_t(config.hidden)), logits(n * size_t(config.vocab));
  tr_step_info info = {};
  info.size = int32_t(sizeof info);
  const int64_t before = allocations;
  ok(backend->model_step(model, &counts, tokens.data(), requests.data(), biases.data(), grants.data(),
                         nullptr, results.data(), top.data(), hidden.data(), logits.data(), &info, &error));
  CHECK(allocations == before);
  CHECK(info.rows_computed == int32_t(tokens.size()) && info.end_ns >= info.start_ns);
  for (size_t i = 0; i < n; i++) {
    if (!requests[i].head) continue;
    CHECK(results[i].finite == 1 && results[i].token >= 0 && results[i].token < config.samplable);
    CHECK(results[i].score > 0 && results[i].score < 1 && results[i].top == requests[i].top);
  }
}

inline void check(const char* kernels, int32_t threads, int32_t weights) {
  Rig rig;
  rig.load(kernels, threads, weights);
  // slot, start, rows, head, top, biases, temperature, top_k, top_p, min_p, random
  rig.step({{0, 0, 17, 0, 0, 0, 0, 0, 1, 0, 0}, {2, 0, 1, 1, 2, 0, 0, 0, 1, 0, 0}}, {});
  rig.step({{1, 0, 20, 1, 1, 2, 1, 5, 0.9f, 0, 77}, {0, 17, 5, 1, 2, 1, 0.7f, 0, 1, 0.1f, ~0ull},
            {2, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0}},
           {{5, 3}, {5, -INFINITY}, {100, 9}});
  rig.step({{1, 20, 28, 0, 0, 0, 0, 0, 1, 0, 0}}, {});
  rig.step({{0, 22, 26, 1, 0, 0, 1, 0, 0.5f, 0, 1}}, {});
}

}  // namespace steps

// A step of every form of weights on a path.
static void checkSteps(const char* kernels, int32_t threads) {
  if (steps::allocations == 0) {
    __sanitizer_install_malloc_and_free_hooks(steps::countAllocation, steps::ignoreFree);
    delete new int;
    CHECK(steps::allocations > 0);
  }
  for (int32_t weights : {TR_WEIGHTS_BF16, TR_WEIGHTS_INT8}) steps::check(kernels, threads, weights);
}
