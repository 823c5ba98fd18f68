// One forward pass over a ragged batch.
#pragma once

#include <stdint.h>

#include "../native/admit.h"
#include "../native/native.h"
#include "model.h"

namespace cpu {

using native::StepArguments;

// Runs a step as native.h says. It allocates nothing.
int32_t step(Model& model, const StepArguments& arguments, tr_step_info* info, tr_error* error);

}  // namespace cpu
