// Steps of the device over the emulated runtime, by its C ABI, under sanitizers: that it allocates nothing in
// a step, that more pages come in one than its copy has room for, and that whatever call of the runtime
// fails, the step says so, the model gives back what it held and another one goes on. Prints "ok", or what is
// wrong.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "../../check/rig.h"
#include "../faults.h"

namespace {

using check::backend;
using check::limitsOf;
using check::Opened;
using check::Rig;

thread_local long allocations = 0;

tr_model_config shape() { return check::qwen3(2, 32, 2, 1, 16, 48, 96, false); }

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
  Rig r(d.device(), shape(), limitsOf(4, 64, 64));
  steps(r);  // graphs are captured, sizes of cuBLASLt planned
  const long before = allocations;
  steps(r);
  CHECK(allocations == before, "%s: %ld allocations in five steps", kernels, allocations - before);
}

// Pages beyond those that a step's own copy has room for: two requests that get all of theirs in one step
// have the answers that each has where they come a few at a time. Windows hide what was not computed.
void manyPages() {
  constexpr int32_t context = 17024, rows = 50;  // 1,064 pages; two windows are 40 tokens
  Opened d("own");
  Rig atOnce(d.device(), shape(), limitsOf(2, context, 64), 20);
  Rig few(d.device(), shape(), limitsOf(2, context, 64), 20);
  atOnce.begin();
  atOnce.add(1, 0, 12);
  atOnce.add(0, context - rows, rows);
  CHECK(int32_t(atOnce.grants.size()) == 1 + atOnce.limits.pages / 2, "%zu grants", atOnce.grants.size());
  atOnce.must();
  const int32_t starts[][2] = {{1, 0}, {0, 8000}, {0, 16000}, {0, context - rows}};
  for (const auto& start : starts) {
    few.begin();
    few.add(start[0], start[1], start[0] ? 12 : start[1] == context - rows ? rows : 1);
    few.must();
    if (start[0] == 0 && start[1] != context - rows) continue;
    const tr_result &got = atOnce.results[start[0] ? 0 : 1], &want = few.results[0];
    CHECK(got.finite && got.token == want.token && got.log_probability == want.log_probability,
          "slot %d: %g, a few pages at a time %g", start[0], double(got.log_probability),
          double(want.log_probability));
  }
}

int64_t freeBytes() {
  tr_device_info info = {};
  info.size = sizeof info;
  tr_error error;
  CHECK(backend().device_info(0, &info, &error) == TR_OK, "%s", error.text);
  return info.free_bytes;
}

// Every call of a first step fails in its turn, until one does not: a graph that is captured, pages, the
// copies.
void faults(const char* kernels) {
  Opened d(kernels);
  const tr_limits l = limitsOf(2, 64, 16);
  Rig other(d.device(), shape(), l);
  auto another = [&] {
    other.begin();
    other.add(0, 0, 3);
    other.must();
  };
  another();  // its graph takes memory
  const int64_t free = freeBytes();
  int32_t calls = 0;
  for (bool failed = true; failed;) {
    Rig r(d.device(), shape(), l);
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
    another();
  }
  CHECK(calls > 30, "%s: %d calls in a step", kernels, calls);
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
