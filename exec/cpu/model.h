// A model on a device: its weights, and after the plan all that steps need.
#pragma once

#include <stdint.h>

#include <memory>
#include <vector>

#include "../native/native.h"
#include "device.h"
#include "router.h"
#include "shape.h"
#include "weights.h"
#include "work.h"
#include "zeroed_memory.h"

namespace cpu {

// What a model of this shape takes, to the byte. workers is the number that the device has.
tr_needs needsOf(const Shape& shape, const tr_limits& limits, int workers);

class Model {
 public:
  static int32_t make(Device& device, const tr_model_config& config, Model** out, tr_error* error);
  ~Model();

  // Converts and packs a tensor, on all workers.
  int32_t put(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns, const void* data,
              tr_error* error);

  // Allocates what steps need. Every tensor must be there.
  int32_t plan(const tr_limits& limits, tr_needs* took, tr_error* error);

  bool planned() const { return work_ != nullptr; }

  Device& device() { return device_; }
  const Shape& shape() const { return shape_; }
  const Weights& weights() const { return weights_; }
  const tr_limits& limits() const { return limits_; }
  Work& work() { return *work_; }
  const Router* router() const { return router_.get(); }  // null without one

 private:
  explicit Model(Device& device) : device_(device) {}

  int32_t checkPut(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns, Place* place,
                   tr_error* error);
  int32_t checkWhole(tr_error* error) const;
  int32_t putRouter(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns,
                    const void* data, tr_error* error);
  void putMatrix(const Place& place, int32_t type, const void* data);
  uint8_t& isThere(int32_t tensor, int32_t layer);

  Device& device_;
  Shape shape_;
  Weights weights_;
  tr_limits limits_;
  std::vector<uint8_t> there_;  // [layer][tensor]: whether it was put
  std::unique_ptr<Work> work_;
  std::unique_ptr<Router> router_;
  ZeroedMemory weightMemory_, workMemory_;
  int64_t takenBytes_ = 0;
};

}  // namespace cpu
