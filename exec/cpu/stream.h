// Reading memory and nothing else, as a measure.
#pragma once

#include <stdint.h>

#include "workers.h"

namespace cpu {

// Adds up the 64 bit words of bytes bytes at data, a multiple of 64 and aligned to 64, on all workers. False
// if a run is going on. It takes the widest loads there are and fetches ahead as the products do.
bool streamSum(Workers& workers, const void* data, int64_t bytes, uint64_t* sum);

}  // namespace cpu
