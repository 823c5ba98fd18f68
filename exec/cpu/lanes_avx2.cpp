#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "lane_kernels.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")
// Multiplications and additions are fused where the source says so and nowhere else: a compiler's own choice
// would depend on what stands around them, and with it the answer.
#pragma GCC optimize("fp-contract=off")

#define LANES_AVX2
#include "lanes.h"

#include "rows_lanes.h"

#include "logits_lanes.h"

#include "attention_lanes.h"

#include "quantise_lanes.h"

#pragma GCC pop_options

namespace cpu {

const LaneKernels laneKernelsAvx2 = {rowKernels, logitsKernels, attentionKernels, quantiseKernels};

}  // namespace cpu

#endif
