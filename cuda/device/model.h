// A model on a device: its weights, and after the plan all that steps need.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "../../exec/native/admit.h"
#include "device.h"
#include "../kernels/random.h"
#include "graphs.h"
#include "lt.h"
#include "shape.h"
#include "weights.h"
#include "work.h"

namespace cuda {

// What a model of this shape takes, to the byte.
tr_needs needsOf(const Shape& shape, const tr_limits& limits);

class Model {
 public:
  static int32_t make(Device& device, const tr_model_config& config, Model** out, tr_error* error);
  ~Model();

  // Converts a tensor and copies it to its place.
  int32_t put(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns, const void* data,
              tr_error* error);

  // Makes a tensor of random numbers at its place.
  int32_t putRandom(int32_t tensor, int32_t layer, int64_t rows, int64_t columns, const Drawn& drawn,
                    tr_error* error);

  // Allocates what steps need. Every tensor must be there.
  int32_t plan(const tr_limits& limits, tr_needs* took, tr_error* error);

  // One forward pass, as native.h says. It allocates nothing but a graph that is captured.
  int32_t step(const native::StepArguments& arguments, tr_step_info* info, tr_error* error);

  void graphs(tr_graphs* graphs) const;

 private:
  explicit Model(Device& device) : device_(device) {}

  int32_t checkPut(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns, Place* place,
                   tr_error* error);
  int32_t checkWhole(tr_error* error);
  int32_t copyMatrix(const Place& place, int32_t type, const void* data, tr_error* error);
  int32_t copyVector(const Place& place, int32_t type, const void* data, tr_error* error);
  int32_t upload(void* to, const void* from, size_t bytes, tr_error* error);
  uint8_t& isThere(int32_t tensor, int32_t layer);
  int32_t clearWeights(int64_t bytes, tr_error* error);
  int32_t clearWork(tr_error* error);
  void release();

  // Of a step: step.cu.
  struct Batch {
    int64_t rows, heads;                  // that were given
    int64_t computedRows, computedHeads;  // with padding
    bool graph;
  };
  int32_t admit(const native::StepArguments& a, tr_error* error);
  Batch layOut(const native::StepArguments& a);
  void layOutPages(const native::StepArguments& a);
  int32_t flushGrants(tr_error* error);
  void pad(Batch* batch);
  void layOutPadding(const Batch& batch);
  int32_t warm(const Batch& batch, tr_error* error);
  int32_t captureDecodes(tr_error* error);
  int32_t capture(const Batch& batch, cudaGraphExec_t* graph, tr_error* error);
  int32_t run(const Batch& batch, const native::StepArguments& a, tr_step_info* info, tr_error* error);
  int32_t enqueue(const Batch& batch, tr_error* error);
  int32_t replay(const Batch& batch, tr_error* error);
  int32_t copyRows(const Batch& batch, const native::StepArguments& a, tr_error* error);
  void answer(const Batch& batch, const native::StepArguments& a);

  Device& device_;
  Shape shape_;
  Weights weights_;
  tr_limits limits_;
  Sizes sizes_;
  std::vector<uint8_t> there_;  // [layer][tensor]: whether it was put
  Block weightMemory_, workMemory_, hostMemory_;
  int64_t takenBytes_ = 0;
  bool planned_ = false, broken_ = false;
  Work work_;
  HostWork host_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
  Graphs graphs_;
  std::set<std::tuple<int64_t, bool, int64_t>> warmed_;  // kinds of batches that have run eagerly
  Lt lt_;

  std::vector<int32_t> pageTables_;  // [slot][tablePages], -1: not granted
  std::vector<int32_t> known_;       // the same as the device has it
  std::vector<uint64_t> lastStep_;   // [slot]: the last step that named it
  std::vector<int32_t> headOf_;      // [head]: its request
  std::vector<tr_grant> pending_;    // what the device is yet to be told of
  uint64_t steps_ = 0;
};

}  // namespace cuda
