#include "device.h"

#include <stdio.h>
#include <string.h>

#include <memory>

#include "../../exec/native/failure.h"

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
  const cudaError_t result = cudaGetDeviceCount(&found);
  *count = 0;
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
  snprintf(info->kernels, sizeof info->kernels, "graphs");
  return TR_OK;
}

int32_t Device::open(const tr_device_options& options, Device** out, tr_error* error) {
  *out = nullptr;
  if (options.size != int32_t(sizeof options)) {
    return fail(error, TR_INVALID, "device_options has %d bytes, want %zu", options.size, sizeof options);
  }
  tr_device_info info = {};
  info.size = int32_t(sizeof info);
  const int32_t status = deviceInfo(options.ordinal, &info, error);
  if (status != TR_OK) return status;
  if (!inRange(error, "budget_bytes", options.budget_bytes, 0, INT64_MAX)) return TR_INVALID;
  std::unique_ptr<Device> device(new Device);
  char kernels[sizeof options.kernels];
  snprintf(kernels, sizeof kernels, "%.*s", int(sizeof kernels - 1), options.kernels);
  device->graphs_ = strcmp(kernels, "eager") != 0;
  if (*kernels && strcmp(kernels, "graphs") != 0 && device->graphs_) {
    return fail(error, TR_INVALID, "kernels %s, want graphs, eager or none", kernels);
  }
  device->ordinal_ = options.ordinal;
  device->multiprocessors_ = info.processors;
  device->budget_.set(options.budget_bytes ? options.budget_bytes : info.free_bytes);
  *out = device.release();
  return TR_OK;
}

int32_t Device::enter(tr_error* error) const {
  return checked(cudaSetDevice(ordinal_), "cudaSetDevice", error);
}

Block::~Block() {
  if (where_ == onCard)
    cudaFree(data_);
  else
    cudaFreeHost(data_);
}

int32_t Block::allocate(Where where, int64_t bytes, tr_error* error) {
  where_ = where;
  if (where == onCard) return checked(cudaMalloc(&data_, size_t(bytes)), "cudaMalloc", error);
  return checked(cudaMallocHost(&data_, size_t(bytes)), "cudaMallocHost", error);
}

}  // namespace cuda
