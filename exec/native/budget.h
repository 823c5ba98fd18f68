// The memory that all models of a device may take together.
#pragma once

#include <mutex>

#include "failure.h"

namespace native {

// Safe for calls from several threads.
class Budget {
 public:
  void set(int64_t bytes) { bytes_ = bytes; }

  // Fails with TR_NO_MEMORY, and takes nothing, if less than bytes are left; what says for which purpose.
  int32_t take(const char* what, int64_t bytes, tr_error* error) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t left = bytes_ - taken_;
    if (bytes > left) {
      return fail(error, TR_NO_MEMORY, "%s: %" PRId64 " bytes are needed, %" PRId64 " of %" PRId64 " are left",
                  what, bytes, left, bytes_);
    }
    taken_ += bytes;
    return TR_OK;
  }

  void giveBack(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    taken_ -= bytes;
  }

 private:
  std::mutex mutex_;
  int64_t bytes_ = 0, taken_ = 0;
};

}  // namespace native
