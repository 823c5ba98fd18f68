// The kernels that are written once, over sixteen lanes, and compiled for each set of instructions.
#pragma once

#include <stdint.h>

#include "attention.h"
#include "logits.h"
#include "paths.h"
#include "quantise.h"
#include "rows.h"

namespace cpu {

struct LaneKernels {
  RowKernels rows;
  LogitsKernels logits;
  AttentionKernels attention;
  QuantiseKernels quantise;
};

// The kernels of an available path.
const LaneKernels& laneKernels(Path path);

extern const LaneKernels laneKernelsPlain, laneKernelsAvx2, laneKernelsAvx512;

}  // namespace cpu
