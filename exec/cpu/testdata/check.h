// A few lines that stand for a test framework.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

// Evenly spread numbers in [-1, 1), the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return float(int32_t(state_)) * 0x1p-31f;
  }
  std::vector<float> take(size_t count) {
    std::vector<float> all(count);
    for (float& f : all) f = next();
    return all;
  }

 private:
  uint32_t state_;
};
