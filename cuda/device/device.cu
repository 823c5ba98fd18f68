#include "device.h"

#include <stdio.h>
#include <string.h>

#include <memory>

#include "../../exec/native/failure.h"
#include "lt.h"

namespace cuda {

using native::fail;
using native::inRange;

int32_t checked(cudaError_t result, const char* call, tr_error* error) {
  if (result == cudaSuccess) return TR_OK;
  return fail(error, result == cudaErrorMemoryAllocation ? TR_NO_MEMORY : TR_FAILED, "%s: %s", call,
              cudaGetErrorString(result));
}

int32_t deviceCount(int32_t* count, tr_error* error) {
  int found = 0;
  int driver = 0;
  const cudaError_t result = cudaGetDeviceCount(&found);
  *count = 0;
  if (result == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) {
    return fail(error, TR_NO_DEVICE, "the driver of the card is for CUDA %d.%d, want %d.%d or later",
                driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  // A machine without a card, or without a driver for it, is sound.
  if (result == cudaErrorNoDevice || result == cudaErrorInsufficientDriver) return TR_OK;
  *count = found;
  return checked(result, "cudaGetDeviceCount", error);
}

namespace {

int32_t checkOrdinal(int32_t ordinal, tr_error* error) {
  int32_t count;
  const int32_t status = deviceCount(&count, error);
  if (status != TR_OK) return status;
  if (count == 0) return fail(error, TR_NO_DEVICE, "no CUDA device: there is no card, or no driver for one");
  if (ordinal >= 0 && ordinal < count) return TR_OK;
  return fail(error, TR_NO_DEVICE, "device %d, want 0 to %d", ordinal, count - 1);
}

}  // namespace

int32_t deviceInfo(int32_t ordinal, tr_device_info* info, tr_error* error) {
  int32_t status = checkOrdinal(ordinal, error);
  if (status != TR_OK) return status;
  if (info->size != int32_t(sizeof *info)) {
    return fail(error, TR_INVALID, "device_info has %d bytes, want %zu", info->size, sizeof *info);
  }
  cudaDeviceProp properties;
  size_t free = 0, total = 0;
  status = checked(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties", error);
  if (status == TR_OK) status = checked(cudaSetDevice(ordinal), "cudaSetDevice", error);
  if (status == TR_OK) status = checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", error);
  if (status != TR_OK) return status;
  *info = {};
  info->size = int32_t(sizeof *info);
  info->page_tokens = pageTokensBest;
  info->processors = properties.multiProcessorCount;
  info->memory_bytes = int64_t(total);
  info->free_bytes = int64_t(free);
  snprintf(info->name, sizeof info->name, "%.*s", int(sizeof info->name - 1), properties.name);
  const int64_t version = ltVersion();
  if (version) {
    snprintf(info->kernels, sizeof info->kernels, "graphs, cuBLASLt %d.%d.%d", int(version / 10000),
             int(version / 100 % 100), int(version % 100));
  } else {
    snprintf(info->kernels, sizeof info->kernels, "graphs, own products: no cuBLASLt");
  }
  return TR_OK;
}

namespace {

// Reads the sizes that graphs are captured of; none given: the usual ones.
int32_t readSizes(const char* name, const int32_t* given, int32_t count, GraphSizes usual, GraphSizes* sizes,
                  tr_error* error) {
  if (!inRange(error, name, count, 0, TR_GRAPH_SIZES_MAX)) return TR_INVALID;
  for (int32_t i = 0; i < count; i++) {
    if (!inRange(error, name, given[i], i ? given[i - 1] + 1 : 1, INT32_MAX)) return TR_INVALID;
  }
  *sizes = count ? GraphSizes(given, given + count) : usual;
  return TR_OK;
}

}  // namespace

int32_t Device::readKernels(const char* words, tr_error* error) {
  char text[sizeof(tr_device_options::kernels)];
  snprintf(text, sizeof text, "%.*s", int(sizeof text - 1), words);
  char* rest = nullptr;
  for (char* word = strtok_r(text, " ", &rest); word; word = strtok_r(nullptr, " ", &rest)) {
    if (strcmp(word, "eager") == 0)
      graphs_ = false;
    else if (strcmp(word, "own") == 0)
      ownProducts_ = true;
    else if (strcmp(word, "graphs") != 0)
      return fail(error, TR_INVALID, "kernels %.*s, want words of graphs, eager and own, or none",
                  int(sizeof text - 1), words);
  }
  return TR_OK;
}

int32_t Device::open(const tr_device_options& options, Device** out, tr_error* error) {
  *out = nullptr;
  if (options.size != int32_t(sizeof options)) {
    return fail(error, TR_INVALID, "device_options has %d bytes, want %zu", options.size, sizeof options);
  }
  tr_device_info info = {};
  info.size = int32_t(sizeof info);
  int32_t status = deviceInfo(options.ordinal, &info, error);
  if (status != TR_OK) return status;
  if (!inRange(error, "budget_bytes", options.budget_bytes, 0, INT64_MAX) ||
      !inRange(error, "threads", options.threads, 0, info.processors) ||
      !inRange(error, "pinned", options.pinned, 0, 0)) {
    return TR_INVALID;
  }
  std::unique_ptr<Device> device(new Device);
  device->ordinal_ = options.ordinal;
  device->multiprocessors_ = info.processors;
  status = device->readKernels(options.kernels, error);
  if (status == TR_OK) {
    status = readSizes("graph_rows", options.graph_rows, options.graph_row_sizes, usualRows(),
                       &device->graphRows_, error);
  }
  if (status == TR_OK) {
    status = readSizes("graph_heads", options.graph_heads, options.graph_head_sizes, usualHeads(),
                       &device->graphHeads_, error);
  }
  if (status == TR_OK && options.threads) {
    status = device->partition_.take(options.ordinal, options.threads, error);
    device->multiprocessors_ = device->partition_.multiprocessors();
  }
  if (status != TR_OK) return status;
  device->budget_.set(options.budget_bytes ? options.budget_bytes : info.free_bytes);
  *out = device.release();
  return TR_OK;
}

int32_t Device::enter(tr_error* error) const {
  return checked(cudaSetDevice(ordinal_), "cudaSetDevice", error);
}

int32_t Device::makeStream(cudaStream_t* stream, tr_error* error) {
  int least = 0, greatest = 0;
  int32_t status = checked(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                           "cudaDeviceGetStreamPriorityRange", error);
  if (status != TR_OK) return status;
  const int priority = hasStream_ ? least : greatest;
  hasStream_ = true;
  if (partition_.multiprocessors()) return partition_.makeStream(priority, stream, error);
  return checked(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority),
                 "cudaStreamCreateWithPriority", error);
}

Block::~Block() { free(); }

void Block::free() {
  if (!data_) return;
  if (where_ == onCard)
    cudaFree(data_);
  else
    cudaFreeHost(data_);
  data_ = nullptr;
}

int32_t Block::allocate(Where where, int64_t bytes, tr_error* error) {
  where_ = where;
  if (where == onCard) return checked(cudaMalloc(&data_, size_t(bytes)), "cudaMalloc", error);
  return checked(cudaMallocHost(&data_, size_t(bytes)), "cudaMallocHost", error);
}

}  // namespace cuda
