// A part of a card's multiprocessors: a green context of the driver, whose functions are found when the
// program runs.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <vector>

#include "../../exec/native/native.h"

namespace cuda {

// Multiprocessors that streams made here have to themselves, as long as all who want some take a Partition.
class Partition {
 public:
  Partition() = default;
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // Takes at least so many of those of a card that no other partition of this process has: whole groups, of
  // which the driver says how large they are (of 8 on an H200). Fails with TR_UNSUPPORTED if the driver or
  // the card knows no partitions, TR_INVALID if too few are left.
  int32_t take(int ordinal, int32_t multiprocessors, tr_error* error);

  int32_t makeStream(int priority, cudaStream_t* stream, tr_error* error) const;

  // How many it has; 0 before take.
  int32_t multiprocessors() const { return multiprocessors_; }

 private:
  int ordinal_ = 0;
  std::vector<size_t> groups_;  // of the card's
  int32_t multiprocessors_ = 0;
  CUgreenCtx context_ = nullptr;
};

}  // namespace cuda
