// The clock of steps.
#pragma once

#include <stdint.h>
#include <time.h>

namespace native {

// Nanoseconds since some moment, never less than before.
inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

}  // namespace native
