// The processors and the memory that models run on.
#pragma once

#include <stdint.h>

#include <memory>
#include <mutex>

#include "../native/budget.h"
#include "paths.h"
#include "workers.h"

namespace cpu {

// Tokens of a KV page that this device likes best.
constexpr int32_t pageTokensBest = 32;

int32_t deviceCount(int32_t* count, tr_error* error);
int32_t deviceInfo(int32_t ordinal, tr_device_info* info, tr_error* error);

// How many workers a device gets unless it is told: one a processor.
int defaultThreads();

// Device is a number of workers and a budget of memory, which its models share.
class Device {
 public:
  static int32_t open(const tr_device_options& options, Device** out, tr_error* error);

  Path path() const { return path_; }
  int workers() const { return workers_->count(); }

  // Calls body(worker) for every worker and returns when all are done. Callers of several models wait for one
  // another.
  template <class F>
  void run(F& body) {
    std::lock_guard<std::mutex> lock(running_);
    workers_->run(body);
  }

  Workers& threads() { return *workers_; }

  native::Budget& budget() { return budget_; }

 private:
  Device() = default;

  std::unique_ptr<Workers> workers_;
  Path path_ = Path::plain;
  std::mutex running_;
  native::Budget budget_;
};

}  // namespace cpu
