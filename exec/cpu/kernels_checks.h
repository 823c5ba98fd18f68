// What the C functions ask of their arguments.
#pragma once

#include <errno.h>
#include <stdint.h>

#include "kernels.h"
#include "packed.h"
#include "paths.h"
#include "workers.h"

namespace cpu {

// Largest row count, depth and width of a matrix: products of two of them fit well into 64 bits.
constexpr int64_t sizeMax = int64_t(1) << 24;

inline bool within(int64_t value, int64_t min, int64_t max) { return value >= min && value <= max; }

inline int32_t checkPath(int32_t path) {
  if (!within(path, 1, pathMax)) return EINVAL;
  return available(Path(path)) ? 0 : ENOTSUP;
}

inline Workers* of(cpu_workers* w) { return reinterpret_cast<Workers*>(w); }

inline const PackedWeights* of(const cpu_weights* w) { return reinterpret_cast<const PackedWeights*>(w); }

// Calls body(i) for 0 to count - 1, shared out over the workers. Returns 0 or EBUSY.
template <class F>
int32_t forEach(Workers& workers, int64_t count, F body) {
  auto share = [&](int worker) {
    Range range = shareOf(count, worker, workers.count());
    for (int64_t i = range.begin; i < range.end; i++) body(i);
  };
  return workers.run(share) ? 0 : EBUSY;
}

}  // namespace cpu
