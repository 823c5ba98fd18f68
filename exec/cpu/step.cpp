#include "step.h"

#include "../native/clock.h"
#include "../native/failure.h"
#include "forward.h"

namespace cpu {

using native::fail;
using native::nowNs;

int32_t step(Model& model, const StepArguments& arguments, tr_step_info* info, tr_error* error) {
  if (info->size != int32_t(sizeof *info)) {
    return fail(error, TR_INVALID, "step_info has %d bytes, want %zu", info->size, sizeof *info);
  }
  if (!model.planned()) return fail(error, TR_INVALID, "a step of a model that was not planned");
  Work& work = model.work();
  const native::Admission admission = {model.limits(), model.shape().config.vocab, work.tablePages,
                                       work.pageTables, work.lastStep, &work.steps};
  int32_t status = native::admit(admission, arguments, error);
  if (status != TR_OK) return status;
  Forward forward(model, arguments);
  *info = {int32_t(sizeof *info), int32_t(forward.rows()), 0, 0, 0, 0};
  // The clock runs from when the workers are this model's: another one's step is none of its own work.
  auto body = [&](int worker) {
    if (worker == 0) info->start_ns = nowNs();
    forward(worker);
  };
  model.device().run(body);
  info->end_ns = nowNs();
  return TR_OK;
}

}  // namespace cpu
