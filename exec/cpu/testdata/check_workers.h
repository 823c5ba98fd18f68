// Workers for checks.
#pragma once

#include <memory>

#include "../workers.h"
#include "check.h"

using namespace cpu;

static std::unique_ptr<Workers> openWorkers(int threads) {
  Workers* made;
  CHECK(Workers::open(threads, nullptr, &made) == 0);
  return std::unique_ptr<Workers>(made);
}
