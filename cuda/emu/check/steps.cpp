// Steps of the device over the emulated runtime, by its C ABI, under sanitizers: that it allocates nothing in a
// step, that more pages come in one than its copy has room for, and that whatever call of the runtime fails, the
// step says so, the model gives back what it held and another one goes on. Prints "ok", or what is wrong.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>
#include <vector>

#include "../../../exec/native/native.h"
#include "../../check/check.h"
#include "../../device/backend.h"
#include "../faults.h"

namespace {

thread_local long allocations = 0;

const tr_backend& backend() { return *static_cast<const tr_backend*>(cuda_backend()); }

constexpr int32_t vocab = 96, pageTokens = 16;

tr_model_config shape() {
  tr_model_config c = {};
  c.size = sizeof c;
  c.layers = 2;
  c.hidden = 32;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_dim = 16;
  c.intermediate = 48;
  c.vocab = c.samplable = vocab;
  c.positions = 1 << 20;
  c.qk_norm = 1;
  c.weights = TR_WEIGHTS_BF16;
  c.norm_epsilon = 1e-6f;
  c.rope_factor = 1;
  return c;
}

tr_limits limitsOf(int32_t slots, int32_t context, int32_t rows = 64) {
  tr_limits l = {};
  l.size = sizeof l;
  l.slots = l.requests_max = slots;
  l.page_tokens = pageTokens;
  l.pages = slots * (context / pageTokens);
  l.context_max = context;
  l.rows_max = rows;
  l.top_max = 3;
  l.biases_max = 4;
  return l;
}

// A model and the arrays of its steps, with room for what tests ask for.
struct Rig {
  tr_model* model = nullptr;
  tr_limits limits;
  std::vector<int32_t> tokens, positions;
  std::vector<tr_request> requests;
  std::vector<tr_grant> grants;
  std::vector<tr_result> results;
  std::vector<tr_candidate> top;
  tr_step_info info = {};
  tr_error error = {};

  Rig(tr_device* device, const tr_limits& l) : limits(l), positions(size_t(l.slots), 0) {
    tokens.reserve(size_t(l.rows_max));
    requests.reserve(size_t(l.slots));
    grants.reserve(size_t(l.pages));
    results.resize(size_t(l.slots));
    top.resize(size_t(l.slots * l.top_max));
    const tr_model_config c = shape();
    CHECK(backend().model_new(device, &c, &model, &error) == TR_OK, "%s", error.text);
    put(c);
    tr_needs took = {};
    took.size = sizeof took;
    CHECK(backend().model_plan(model, &limits, &took, &error) == TR_OK, "%s", error.text);
  }
  ~Rig() { backend().model_close(model); }

  void random(int32_t tensor, int32_t layer, int64_t rows, int64_t columns) {
    const double scale = rows == 1 ? 1e-7 : 1e-6;
    CHECK(backend().model_random(model, tensor, layer, rows, columns, uint64_t(tensor * 100 + layer),
                                 rows == 1, scale, &error) == TR_OK,
          "%s", error.text);
  }
  void put(const tr_model_config& c) {
    random(TR_EMBEDDING, 0, vocab, c.hidden);
    random(TR_HEAD, 0, vocab, c.hidden);
    random(TR_FINAL_NORM, 0, 1, c.hidden);
    for (int32_t l = 0; l < c.layers; l++) {
      random(TR_INPUT_NORM, l, 1, c.hidden);
      random(TR_Q, l, 32, c.hidden);
      random(TR_K, l, 16, c.hidden);
      random(TR_V, l, 16, c.hidden);
      random(TR_Q_NORM, l, 1, 16);
      random(TR_K_NORM, l, 1, 16);
      random(TR_O, l, c.hidden, 32);
      random(TR_POST_NORM, l, 1, c.hidden);
      random(TR_GATE, l, c.intermediate, c.hidden);
      random(TR_UP, l, c.intermediate, c.hidden);
      random(TR_DOWN, l, c.hidden, c.intermediate);
    }
    const double frequencies[8] = {1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.02, 0.01};
    const int32_t windows[2] = {20, 20};
    CHECK(backend().model_put(model, TR_ROPE_FREQUENCIES, 0, TR_F64, 1, 8, frequencies, &error) == TR_OK, "%s",
          error.text);
    CHECK(backend().model_put(model, TR_WINDOWS, 0, TR_I32, 1, 2, windows, &error) == TR_OK, "%s", error.text);
  }

  void begin() {
    tokens.clear();
    requests.clear();
    grants.clear();
  }
  // rows more tokens of a slot, at start, with all pages up to there granted anew.
  void add(int32_t slot, int32_t start, int32_t rows) {
    const int32_t own = limits.context_max / pageTokens;
    for (int32_t i = 0; i * pageTokens < start + rows; i++) grants.push_back({slot, i, slot * own + i});
    for (int32_t i = 0; i < rows; i++) tokens.push_back((slot + start + i) % vocab);
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
    const tr_step_counts counts = {int32_t(sizeof counts), int32_t(requests.size()), int32_t(grants.size()), 0};
    info.size = sizeof info;
    return backend().model_step(model, &counts, tokens.data(), requests.data(), nullptr, grants.data(), nullptr,
                                results.data(), top.data(), nullptr, nullptr, &info, &error);
  }
  void must() { CHECK(run() == TR_OK, "%s", error.text); }
};

struct Opened {
  tr_device* device = nullptr;

  explicit Opened(const char* kernels) {
    tr_device_options o = {};
    o.size = sizeof o;
    snprintf(o.kernels, sizeof o.kernels, "%s", kernels);
    tr_error error;
    CHECK(backend().device_open(&o, &device, &error) == TR_OK, "%s", error.text);
  }
  ~Opened() { backend().device_close(device); }
};

// The steps of the suite of allocations: decodes and extends, inside and outside the grid of graphs.
void steps(Rig& r) {
  for (int32_t count : {1, 3}) {
    r.begin();
    for (int32_t slot = 0; slot < count; slot++) r.add(slot, 0, 5 + slot);
    r.must();
    r.begin();
    for (int32_t slot = 0; slot < count; slot++) r.add(slot, 5 + slot, 1);
    r.must();
  }
  r.begin();
  r.add(0, 0, 40);  // cuBLASLt's
  r.must();
}

void allocatesNothing(const char* kernels) {
  Opened d(kernels);
  Rig r(d.device, limitsOf(4, 64));
  steps(r); // graphs are captured, sizes of cuBLASLt planned
  const long before = allocations;
  steps(r);
  CHECK(allocations == before, "%s: %ld allocations in five steps", kernels, allocations - before);
}

// Pages beyond those that a step's own copy has room for: two requests that get all of theirs in one step have the
// answers that each has alone. Windows hide what was not computed.
void manyPages() {
  constexpr int32_t context = 17024, rows = 50;  // 1,064 pages; two windows are 40 tokens
  Opened d("own");
  Rig r(d.device, limitsOf(2, context));
  tr_result alone[2];
  auto first = [&] { r.add(1, 0, 12); };
  auto second = [&] { r.add(0, context - rows, rows); };
  r.begin();
  first();
  second();
  CHECK(int32_t(r.grants.size()) == 1 + context / pageTokens, "%zu grants", r.grants.size());
  r.must();
  const tr_result together[2] = {r.results[0], r.results[1]};
  for (int32_t i = 0; i < 2; i++) {
    r.begin();
    if (i == 0)
      first();
    else
      second();
    r.must();
    alone[i] = r.results[0];
    CHECK(together[i].finite && together[i].token == alone[i].token &&
              together[i].log_probability == alone[i].log_probability,
          "request %d: %g, alone %g", i, double(together[i].log_probability), double(alone[i].log_probability));
  }
}

int64_t freeBytes() {
  tr_device_info info = {};
  info.size = sizeof info;
  tr_error error;
  CHECK(backend().device_info(0, &info, &error) == TR_OK, "%s", error.text);
  return info.free_bytes;
}

// Every call of a first step fails in its turn, until one does not: a graph that is captured, pages, the copies.
void faults(const char* kernels) {
  Opened d(kernels);
  const tr_limits l = limitsOf(2, 64, 16);
  Rig other(d.device, l);
  const int64_t free = freeBytes();
  int32_t calls = 0;
  for (bool failed = true; failed;) {
    Rig r(d.device, l);
    r.begin();
    r.add(0, 0, 5);
    r.add(1, 0, 1);
    emu_fail_from(++calls);
    const int32_t status = r.run();
    emu_fail_from(0);
    failed = status != TR_OK;
    if (!failed) break;
    CHECK(status == TR_FAILED && strncmp(r.error.text, "step 1: ", 8) == 0 && strlen(r.error.text) > 12,
          "%s, call %d: status %d, %s", kernels, calls, status, r.error.text);
    CHECK(freeBytes() == free, "%s, call %d: %lld bytes are not given back", kernels, calls,
          static_cast<long long>(free - freeBytes()));
    CHECK(r.run() == TR_FAILED, "%s, call %d: the next step", kernels, calls);
    other.begin();
    other.add(0, 0, 3);
    other.must();
  }
  CHECK(calls > 40, "%s: %d calls in a step", kernels, calls);
}

}  // namespace

// Counts what the device allocates, not what the emulated runtime does for itself.
void* operator new(size_t bytes) {
  allocations += !emu_inside();
  void* made = malloc(bytes ? bytes : 1);
  if (!made) abort();
  return made;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

int main() {
  for (const char* kernels : {"graphs", "eager"}) allocatesNothing(kernels);
  manyPages();
  for (const char* kernels : {"graphs", "eager own"}) faults(kernels);
  puts("ok");
}
