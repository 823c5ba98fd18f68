#include "router_kernels.h"
#include "rows.h"

// Multiplications and additions are fused where the source says so and nowhere else: see lanes_plain.cpp.
#pragma GCC optimize("fp-contract=off")

#include "lanes.h"

#include "router_lanes.h"

namespace cpu {

const RouterKernels routerKernelsPlain = routerKernelsOfLanes;

}  // namespace cpu
