#include "lane_kernels.h"

// As in the other lanes_*.cpp: matters where the machine has fused operations from the start.
#pragma GCC optimize("fp-contract=off")

#include "lanes.h"

#include "rows_lanes.h"

#include "logits_lanes.h"

#include "attention_lanes.h"

#include "quantise_lanes.h"

namespace cpu {

const LaneKernels laneKernelsPlain = {rowKernels, logitsKernels, attentionKernels, quantiseKernels};

}  // namespace cpu
