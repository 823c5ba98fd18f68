#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "router_kernels.h"
#include "rows.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
// Multiplications and additions are fused where the source says so and nowhere else: see lanes_avx512.cpp.
#pragma GCC optimize("fp-contract=off")

#define LANES_AVX512
#include "lanes.h"

#include "router_lanes.h"

#pragma GCC pop_options

namespace cpu {

const RouterKernels routerKernelsAvx512 = routerKernelsOfLanes;

}  // namespace cpu

#endif
