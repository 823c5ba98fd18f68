// Page tables on the device.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "../../exec/native/native.h"

namespace cuda {

// tables[slot][tablePages] gets grants, of which no two are of the same slot and index with another page.
// count is of the device; threads that have none do nothing, so that a launch has room for any number up to
// grantsMax.
struct Grants {
  const tr_grant* grants;
  const int32_t* count;
  int32_t* tables;
  int64_t tablePages;
};
cudaError_t applyGrants(const Grants& g, int64_t grantsMax, cudaStream_t stream);

}  // namespace cuda
