#include "backend.h"

#include "../../exec/native/failure.h"
#include "device.h"
#include "model.h"

using namespace cuda;
using native::guarded;

namespace {

Device* of(tr_device* device) { return reinterpret_cast<Device*>(device); }
Model* of(tr_model* model) { return reinterpret_cast<Model*>(model); }

int32_t deviceOpen(const tr_device_options* options, tr_device** device, tr_error* error) {
  return guarded(error, [&] { return Device::open(*options, reinterpret_cast<Device**>(device), error); });
}

void deviceClose(tr_device* device) { delete of(device); }

int32_t probe(const tr_device*, const tr_model_config* config, const tr_limits* limits, tr_needs* needs,
              tr_error* error) {
  return guarded(error, [&] {
    Shape shape;
    int32_t status = shapeOf(*config, &shape, error);
    if (status == TR_OK) status = checkShapeLimits(shape, *limits, error);
    if (status != TR_OK) return status;
    *needs = needsOf(shape, *limits);
    return status;
  });
}

int32_t modelNew(tr_device* device, const tr_model_config* config, tr_model** model, tr_error* error) {
  Model** made = reinterpret_cast<Model**>(model);
  return guarded(error, [&] { return Model::make(*of(device), *config, made, error); });
}

int32_t modelPut(tr_model* model, int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns,
                 const void* data, tr_error* error) {
  return guarded(error, [&] { return of(model)->put(tensor, layer, type, rows, columns, data, error); });
}

int32_t modelPlan(tr_model* model, const tr_limits* limits, tr_needs* took, tr_error* error) {
  return guarded(error, [&] { return of(model)->plan(*limits, took, error); });
}

int32_t modelStep(tr_model* model, const tr_step_counts* counts, const int32_t* tokens,
                  const tr_request* requests, const tr_bias* biases, const tr_grant* grants,
                  const int32_t* freed, tr_result* results, tr_candidate* top, float* hidden, float* logits,
                  tr_step_info* info, tr_error* error) {
  const native::StepArguments arguments = {counts, tokens,  requests, biases, grants,
                                           freed,  results, top,      hidden, logits};
  return guarded(error, [&] { return of(model)->step(arguments, info, error); });
}

void modelClose(tr_model* model) { delete of(model); }

void modelGraphs(const tr_model* model, tr_graphs* graphs) {
  reinterpret_cast<const Model*>(model)->graphs(graphs);
}

int32_t modelRandom(tr_model* model, int32_t tensor, int32_t layer, int64_t rows, int64_t columns,
                    uint64_t state, double mean, double scale, tr_error* error) {
  const Drawn drawn = {state, mean, scale};
  return guarded(error, [&] { return of(model)->putRandom(tensor, layer, rows, columns, drawn, error); });
}

constexpr tr_backend backend = {int32_t(sizeof(tr_backend)),
                                TR_ABI_VERSION,
                                "cuda",
                                deviceCount,
                                deviceInfo,
                                deviceOpen,
                                deviceClose,
                                probe,
                                modelNew,
                                modelPut,
                                modelPlan,
                                modelStep,
                                modelClose,
                                modelGraphs,
                                modelRandom};

}  // namespace

const void* cuda_backend(void) { return &backend; }
