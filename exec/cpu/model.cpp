#include "../native/failure.h"
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>


namespace cpu {

using native::fail;
using native::inRange;

namespace {

// Elements of a vector, and rows of a matrix, that a worker takes at a time at least.
constexpr int64_t rowsShared = blockColumns;

// Puts count numbers of a vector to their places.
template <class T>
void scatter(const Place& place, const T* numbers) {
  T* out = static_cast<T*>(place.vector);
  for (int64_t i = 0; i < place.columns; i++) memcpy(out + place.at(i), numbers + i, sizeof(T));
}

void putVector(const Place& place, int32_t type, const void* data) {
  if (place.type == TR_F64) return scatter(place, static_cast<const double*>(data));
  if (place.type == TR_I32) return scatter(place, static_cast<const int32_t*>(data));
  std::vector<float> floats(size_t(place.columns));
  convert(type, data, place.columns, floats.data());
  scatter(place, floats.data());
}

int64_t bytesOf(int32_t type) { return type == TR_F64 ? 8 : type == TR_F32 || type == TR_I32 ? 4 : 2; }

// Writes to every page of a block, so that the memory is there, and lies near the worker that reads it.
void touch(Device& device, void* block, int64_t bytes) {
  constexpr int64_t pageBytes = 4096;
  auto body = [&](int worker) {
    Range share = shareOf((bytes + pageBytes - 1) / pageBytes, worker, device.workers());
    char* base = static_cast<char*>(block);
    for (int64_t i = share.begin; i < share.end; i++) *static_cast<volatile char*>(base + i * pageBytes) = 0;
  };
  device.run(body);
}

int64_t routerBytes(const Shape& shape) {
  return shape.router() ? Router::weightBytes(routerShapeOf(shape)) : 0;
}

}  // namespace

tr_needs needsOf(const Shape& shape, const tr_limits& limits, int workers) {
  Carver weightCarver(nullptr), workCarver(nullptr);
  Weights weights;
  takeWeights(weightCarver, shape, &weights);
  Work work;
  takeCache(workCarver, shape, limits, &work);
  tr_needs needs = {};
  needs.size = int32_t(sizeof needs);
  needs.weight_bytes = weightCarver.bytes() + routerBytes(shape);
  needs.kv_bytes = workCarver.bytes();
  takeWork(workCarver, shape, limits, workers, &work);
  needs.work_bytes = workCarver.bytes() - needs.kv_bytes;
  needs.kv_bytes_per_token = shape.kvBytesPerToken();
  return needs;
}

int32_t Model::make(Device& device, const tr_model_config& config, Model** out, tr_error* error) {
  *out = nullptr;
  std::unique_ptr<Model> model(new Model(device));
  int32_t status = shapeOf(config, &model->shape_, error);
  if (status != TR_OK) return status;
  Carver counted(nullptr);
  takeWeights(counted, model->shape_, &model->weights_);
  const int64_t bytes = counted.bytes() + routerBytes(model->shape_);
  status = device.budget().take("weights", bytes, error);
  if (status != TR_OK) return status;
  model->takenBytes_ = bytes;
  if (model->shape_.router() && Router::make(routerShapeOf(model->shape_), &model->router_) != 0) {
    return fail(error, TR_NO_MEMORY, "router: no memory for bookkeeping");
  }
  if (!model->weightMemory_.allocate(size_t(counted.bytes()))) {
    return fail(error, TR_NO_MEMORY, "weights: there are no %" PRId64 " bytes of memory", counted.bytes());
  }
  Carver carver(model->weightMemory_.data());
  takeWeights(carver, model->shape_, &model->weights_);
  model->there_.resize(size_t(config.layers) * (tensorMax + 1));
  *out = model.release();
  return TR_OK;
}

Model::~Model() { device_.budget().giveBack(takenBytes_); }

uint8_t& Model::isThere(int32_t tensor, int32_t layer) {
  return there_[size_t(layer) * (tensorMax + 1) + size_t(tensor)];
}

int32_t Model::checkPut(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns,
                        Place* place, tr_error* error) {
  if (!inRange(error, "tensor", tensor, 1, tensorMax)) return TR_INVALID;
  const char* name = tensorName(tensor);
  if (!inRange(error, name, layer, 0, tensorLayers(shape_, tensor) - 1)) return TR_INVALID;
  if (!placeOf(shape_, weights_, tensor, layer, place)) {
    return fail(error, TR_INVALID, "%s: the model has no such tensor", name);
  }
  const int32_t status = native::checkFits(*place, name, type, rows, columns, error);
  if (status != TR_OK) return status;
  if (isThere(tensor, layer)) return fail(error, TR_INVALID, "%s of layer %d is there already", name, layer);
  return TR_OK;
}

int32_t Model::put(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns,
                   const void* data, tr_error* error) {
  if (tensor >= TR_ROUTER_TOP && tensor <= TR_ROUTER_OUT_BIAS) {
    return putRouter(tensor, layer, type, rows, columns, data, error);
  }
  Place place;
  int32_t status = checkPut(tensor, layer, type, rows, columns, &place, error);
  if (status != TR_OK) return status;
  if (place.matrix) {
    putMatrix(place, type, data);
  } else {
    putVector(place, type, data);
  }
  if (tensor == TR_WINDOWS) {
    for (int64_t i = 0; i < columns; i++) {
      if (weights_.windows[i] < 0) return fail(error, TR_INVALID, "TR_WINDOWS: %d", weights_.windows[i]);
    }
  }
  isThere(tensor, layer) = 1;
  return TR_OK;
}

int32_t Model::putRouter(int32_t tensor, int32_t layer, int32_t type, int64_t rows, int64_t columns,
                         const void* data, tr_error* error) {
  const char* name = tensorName(tensor);
  if (type != TR_F32) return fail(error, TR_INVALID, "%s: type %d, want f32", name, type);
  if (!router_) return fail(error, TR_INVALID, "%s: the model has no router", name);
  const RouterTensor part = RouterTensor(tensor - TR_ROUTER_TOP + int32_t(RouterTensor::top));
  const int32_t failed = router_->put(part, layer, rows, columns, static_cast<const float*>(data));
  if (failed == ENOMEM) return fail(error, TR_NO_MEMORY, "%s: no memory", name);
  if (!failed) return TR_OK;
  return fail(error, TR_INVALID, "%s of block %d: %" PRId64 " x %" PRId64 ", want a tensor of this router",
              name, layer, rows, columns);
}

void Model::putMatrix(const Place& place, int32_t type, const void* data) {
  const int64_t rowBytes = place.columns * bytesOf(type);
  auto body = [&](int worker) {
    Range share = shareOf((place.rows + rowsShared - 1) / rowsShared, worker, device_.workers());
    PutScratch scratch;
    for (int64_t i = share.begin * rowsShared; i < share.end * rowsShared && i < place.rows; i++) {
      putColumn(*place.matrix, place.at(i), type, static_cast<const char*>(data) + i * rowBytes, scratch);
    }
  };
  device_.run(body);
}

int32_t Model::checkWhole(tr_error* error) const {
  Place place;
  for (int32_t tensor = 1; tensor <= tensorMax; tensor++) {
    for (int32_t layer = 0; layer < tensorLayers(shape_, tensor); layer++) {
      const bool there = there_[size_t(layer) * (tensorMax + 1) + size_t(tensor)];
      if (there || !placeOf(shape_, weights_, tensor, layer, &place)) continue;
      return fail(error, TR_INVALID, "%s of layer %d was not put", tensorName(tensor), layer);
    }
  }
  if (router_ && !router_->complete()) return fail(error, TR_INVALID, "a tensor of the router was not put");
  return TR_OK;
}

int32_t Model::plan(const tr_limits& limits, tr_needs* took, tr_error* error) {
  if (planned()) return fail(error, TR_INVALID, "the model was planned already");
  int32_t status = checkWhole(error);
  if (status == TR_OK) status = checkLimits(shape_, limits, error);
  if (status != TR_OK) return status;
  const tr_needs needs = needsOf(shape_, limits, device_.workers());
  const int64_t bytes = needs.kv_bytes + needs.work_bytes;
  status = device_.budget().take("KV pages and work", bytes, error);
  if (status != TR_OK) return status;
  if (!workMemory_.allocate(size_t(bytes))) {
    device_.budget().giveBack(bytes);
    return fail(error, TR_NO_MEMORY, "KV pages and work: there are no %" PRId64 " bytes of memory", bytes);
  }
  takenBytes_ += bytes;
  touch(device_, workMemory_.data(), bytes);
  limits_ = limits;
  Carver carver(workMemory_.data());
  work_.reset(new Work());
  takeCache(carver, shape_, limits, work_.get());
  takeWork(carver, shape_, limits, device_.workers(), work_.get());
  memset(work_->pageTables, 0xff, size_t(limits.slots * work_->tablePages) * sizeof(int32_t));
  *took = needs;
  return TR_OK;
}

}  // namespace cpu
