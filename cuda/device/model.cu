#include "model.h"

#include <string.h>

#include <algorithm>

#include "../../exec/native/failure.h"
#include "../../exec/native/halves.h"
#include "../../exec/native/tensors.h"

namespace cuda {

using native::Carver;
using native::fail;
using native::inRange;
using native::tensorMax;
using native::tensorName;

namespace {

// Bytes of a matrix that are converted before they are copied.
constexpr int64_t stagedBytes = 8 << 20;

int64_t bytesOf(int32_t type) { return type == TR_F64 ? 8 : type == TR_F32 || type == TR_I32 ? 4 : 2; }

uint16_t halfAt(const char* source, int64_t i) {
  uint16_t half;
  memcpy(&half, source + i * int64_t(sizeof half), sizeof half);
  return half;
}

float numberAt(const char* source, int32_t type, int64_t i) {
  if (type == TR_BF16) return native::widen(halfAt(source, i));
  if (type == TR_F16) return native::widenF16(halfAt(source, i));
  float f;
  memcpy(&f, source + i * int64_t(sizeof f), sizeof f);
  return f;
}

// One row of a matrix as it is kept; out is zero.
void convertRow(const Place& p, int32_t type, const char* source, uint16_t* out) {
  for (int64_t k = 0; k < p.columns; k++) {
    const int64_t at = k / p.columnRun * p.columnStride + k % p.columnRun;
    out[at] = type == TR_BF16 ? halfAt(source, k) : native::narrow(numberAt(source, type, k));
  }
}

}  // namespace

tr_needs needsOf(const Shape& shape, const tr_limits& limits) {
  Carver weightCarver(nullptr), workCarver(nullptr), hostCarver(nullptr);
  Weights weights;
  takeWeights(weightCarver, shape, &weights);
  Work work;
  takeCache(workCarver, shape, limits, &work);
  tr_needs needs = {};
  needs.size = int32_t(sizeof needs);
  needs.weight_bytes = weightCarver.bytes();
  needs.kv_bytes = workCarver.bytes();
  takeWork(workCarver, shape, limits, &work);
  needs.work_bytes = workCarver.bytes() - needs.kv_bytes;
  needs.kv_bytes_per_token = shape.kvBytesPerToken();
  return needs;
}

int32_t Model::make(Device& device, const tr_model_config& config, Model** out, tr_error* error) {
  *out = nullptr;
  std::unique_ptr<Model> model(new Model(device));
  int32_t status = shapeOf(config, &model->shape_, error);
  if (status == TR_OK) status = device.enter(error);
  if (status != TR_OK) return status;
  Carver counted(nullptr);
  takeWeights(counted, model->shape_, &model->weights_);
  status = device.budget().take("weights", counted.bytes(), error);
  if (status != TR_OK) return status;
  model->takenBytes_ = counted.bytes();
  status = model->weightMemory_.allocate(Block::onCard, counted.bytes(), error);
  if (status != TR_OK) return status;
  status = device.makeStream(&model->stream_, error);
  if (status == TR_OK) status = model->clearWeights(counted.bytes(), error);
  Carver carver(model->weightMemory_.data());
  takeWeights(carver, model->shape_, &model->weights_);
  const int32_t layers = std::max(config.layers, config.router_blocks);
  model->there_.resize(size_t(layers) * (tensorMax + 1));
  if (status == TR_OK) *out = model.release();
  return status;
}

Model::~Model() {
  device_.enter(nullptr);
  release();
  if (start_) cudaEventDestroy(start_);
  if (end_) cudaEventDestroy(end_);
  if (stream_) cudaStreamDestroy(stream_);
}

// Gives back all memory, once nothing uses it any more.
void Model::release() {
  if (stream_) cudaStreamSynchronize(stream_);
  graphs_.clear();
  weightMemory_.free();
  workMemory_.free();
  hostMemory_.free();
  device_.budget().giveBack(takenBytes_);
  takenBytes_ = 0;
}

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
  Place place;
  int32_t status = checkPut(tensor, layer, type, rows, columns, &place, error);
  if (status == TR_OK) status = device_.enter(error);
  if (status != TR_OK) return status;
  if (tensor == TR_WINDOWS) {
    memcpy(place.vector, data, size_t(columns) * sizeof(int32_t));
    for (int32_t window : weights_.windows) {
      if (!inRange(error, "TR_WINDOWS", window, 0, INT32_MAX)) return TR_INVALID;
    }
  } else {
    status = place.matrix ? copyMatrix(place, type, data, error) : copyVector(place, type, data, error);
  }
  if (status == TR_OK) isThere(tensor, layer) = 1;
  return status;
}

int32_t Model::putRandom(int32_t tensor, int32_t layer, int64_t rows, int64_t columns, const Drawn& drawn,
                         tr_error* error) {
  Place p;
  int32_t status = checkPut(tensor, layer, TR_BF16, rows, columns, &p, error);
  if (status == TR_OK) status = device_.enter(error);
  if (status != TR_OK) return status;
  const Filled filled = {p.rows,
                         p.columns,
                         p.matrix ? p.matrix->weights : nullptr,
                         p.matrix ? p.matrix->stride() : 0,
                         static_cast<float*>(p.vector),
                         p.first,
                         p.run,
                         p.stride,
                         p.columnRun,
                         p.columnStride};
  status = checked(fillRandom(drawn, filled, stream_), "launch", error);
  if (status == TR_OK) status = checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
  if (status == TR_OK) isThere(tensor, layer) = 1;
  return status;
}

// What fills up matrices is zero.
int32_t Model::clearWeights(int64_t bytes, tr_error* error) {
  const int32_t status =
      checked(cudaMemsetAsync(weightMemory_.data(), 0, size_t(bytes), stream_), "cudaMemsetAsync", error);
  if (status != TR_OK) return status;
  return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
}

// Copies to the device, for what the stream does next. cudaMemcpy would not do: where the host's memory may
// be paged out it can return before the copy has ended, and a stream of ours would not wait for the rest.
int32_t Model::upload(void* to, const void* from, size_t bytes, tr_error* error) {
  const int32_t status = checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
                                 "cudaMemcpyAsync to the device", error);
  if (status != TR_OK) return status;
  return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
}

// Rows go in pieces that lie together at their place.
int32_t Model::copyMatrix(const Place& p, int32_t type, const void* data, tr_error* error) {
  const int64_t stride = p.matrix->stride(), rowBytes = p.columns * bytesOf(type);
  const int64_t together = p.run == p.stride ? p.rows : p.run;
  const int64_t most = std::max<int64_t>(stagedBytes / (stride * int64_t(sizeof(uint16_t))), 1);
  std::vector<uint16_t> staged;
  for (int64_t i = 0; i < p.rows;) {
    int64_t count = std::min({p.rows - i, together - i % together, most});
    staged.assign(size_t(count * stride), 0);
    for (int64_t j = 0; j < count; j++) {
      convertRow(p, type, static_cast<const char*>(data) + (i + j) * rowBytes, &staged[size_t(j * stride)]);
    }
    const int32_t status = upload(p.matrix->weights + p.at(i) * stride, staged.data(),
                                  staged.size() * sizeof(uint16_t), error);
    if (status != TR_OK) return status;
    i += count;
  }
  return TR_OK;
}

int32_t Model::copyVector(const Place& p, int32_t type, const void* data, tr_error* error) {
  const char* source = static_cast<const char*>(data);
  std::vector<float> floats;
  const int64_t size = bytesOf(p.type);
  if (p.type == TR_F32) {
    for (int64_t i = 0; i < p.columns; i++) floats.push_back(numberAt(source, type, i));
    source = reinterpret_cast<const char*>(floats.data());
  }
  const int64_t together = p.run == p.stride ? p.columns : p.run;
  for (int64_t i = 0; i < p.columns; i += together) {
    const int32_t status = upload(static_cast<char*>(p.vector) + p.at(i) * size, source + i * size,
                                  size_t(together * size), error);
    if (status != TR_OK) return status;
  }
  return TR_OK;
}

int32_t Model::checkWhole(tr_error* error) {
  Place place;
  for (int32_t tensor = 1; tensor <= tensorMax; tensor++) {
    for (int32_t layer = 0; layer < tensorLayers(shape_, tensor); layer++) {
      if (isThere(tensor, layer) || !placeOf(shape_, weights_, tensor, layer, &place)) continue;
      return fail(error, TR_INVALID, "%s of layer %d was not put", tensorName(tensor), layer);
    }
  }
  return TR_OK;
}

int32_t Model::plan(const tr_limits& limits, tr_needs* took, tr_error* error) {
  if (planned_) return fail(error, TR_INVALID, "the model was planned already");
  int32_t status = checkWhole(error);
  if (status == TR_OK) status = checkShapeLimits(shape_, limits, error);
  if (status == TR_OK) status = device_.enter(error);
  if (status != TR_OK) return status;
  const tr_needs needs = needsOf(shape_, limits);
  const int64_t bytes = needs.kv_bytes + needs.work_bytes;
  status = device_.budget().take("KV pages and work", bytes, error);
  if (status != TR_OK) return status;
  takenBytes_ += bytes;
  status = workMemory_.allocate(Block::onCard, bytes, error);
  Carver counted(nullptr);
  takeHostWork(counted, shape_, limits, &host_);
  if (status == TR_OK) status = hostMemory_.allocate(Block::onHost, counted.bytes(), error);
  if (status != TR_OK) return status;
  limits_ = limits;
  sizes_ = sizesOf(shape_, limits);
  Carver carver(workMemory_.data()), hostCarver(hostMemory_.data());
  takeCache(carver, shape_, limits, &work_);
  takeWork(carver, shape_, limits, &work_);
  takeHostWork(hostCarver, shape_, limits, &host_);
  status = clearWork(error);
  pageTables_.assign(size_t(limits.slots * sizes_.tablePages), -1);
  known_ = pageTables_;
  lastStep_.assign(size_t(limits.slots), 0);
  headOf_.resize(size_t(sizes_.heads));
  pending_.reserve(size_t(limits.requests_max * sizes_.tablePages));
  if (status == TR_OK && ltVersion() && limits.rows_max > skinnyRows && !device_.ownProducts())
    status = lt_.open(work_.ltWorkspace, error);
  if (status == TR_OK) status = captureDecodes(error);
  planned_ = status == TR_OK;
  *took = needs;
  return status;
}

// What must not be just anything: counters, what is behind the heads in a row, and the pages of padding.
int32_t Model::clearWork(tr_error* error) {
  const int64_t counters = shape_.kvHeads() * sizes_.counters,
                tables = int64_t(limits_.slots) * sizes_.tablePages;
  const std::vector<int32_t> padding(size_t(sizes_.tablePages), limits_.pages);
  int32_t status = checked(cudaEventCreateWithFlags(&start_, cudaEventDefault), "cudaEventCreate", error);
  if (status == TR_OK)
    status = checked(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreate", error);
  auto clear = [&](void* data, int64_t bytes) {
    if (status != TR_OK) return;
    status = checked(cudaMemsetAsync(data, 0, size_t(bytes), stream_), "cudaMemsetAsync", error);
  };
  clear(work_.counters, counters * int64_t(sizeof(int32_t)));
  clear(work_.attended, sizes_.rows * sizes_.attendedStride * int64_t(sizeof(uint16_t)));
  clear(work_.tables, tables * int64_t(sizeof(int32_t)));
  if (status != TR_OK) return status;
  return upload(work_.tables + tables, padding.data(), padding.size() * sizeof(int32_t), error);
}

}  // namespace cuda
