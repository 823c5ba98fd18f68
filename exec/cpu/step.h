// One forward pass over a ragged batch.
#pragma once

#include <stdint.h>

#include "../native/native.h"
#include "model.h"

namespace cpu {

// What a step was given; the arrays are the caller's.
struct StepArguments {
  const tr_step_counts* counts;
  const int32_t* tokens;
  const tr_request* requests;
  const tr_bias* biases;
  const tr_grant* grants;
  const int32_t* freed;
  tr_result* results;
  tr_candidate* top;
  float* hidden;
  float* logits;
};

// Runs a step as native.h says. It allocates nothing.
int32_t step(Model& model, const StepArguments& arguments, tr_step_info* info, tr_error* error);

// Checks all of a step. Pages are freed and granted in between, before the requests are looked at.
int32_t admit(Model& model, const StepArguments& arguments, tr_error* error);

}  // namespace cpu
