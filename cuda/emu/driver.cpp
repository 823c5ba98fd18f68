// The functions of cuda.h: a card of as many multiprocessors as cudaGetDeviceProperties says, of which parts
// are groups of two. As strict as the driver: only the whole card is split, and groups are joined of one split.
#include "include/cuda.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "faults.h"

struct emuDescription {
  unsigned multiprocessors;
};

struct emuPartition {
  unsigned multiprocessors;
};

static std::atomic<int32_t> driverVersion{CUDART_VERSION};
static std::atomic<unsigned> splits{0};

void emu_driver(int32_t version) { driverVersion = version ? version : CUDART_VERSION; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = driverVersion;
  return cudaSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  *resource = {type, {unsigned(properties.multiProcessorCount)}, 0};
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned* count, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned, unsigned least) {
  const unsigned size = std::max(1u, (least + 1) / 2) * 2, most = input->sm.smCount / size;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM || input->split != 0 || least > input->sm.smCount)
    return CUDA_ERROR_INVALID_VALUE;
  *count = groups ? std::min(*count, most) : most;
  if (!groups) return CUDA_SUCCESS;
  const unsigned split = ++splits;
  for (unsigned i = 0; i < *count; i++) groups[i] = {CU_DEV_RESOURCE_TYPE_SM, {size}, split};
  *remaining = {CU_DEV_RESOURCE_TYPE_SM, {input->sm.smCount - *count * size}, split};
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  thread_local emuDescription made;
  made = {0};
  for (unsigned i = 0; i < count; i++) {
    if (resources[i].split != resources[0].split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    made.multiprocessors += resources[i].sm.smCount;
  }
  *description = &made;
  return count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice, unsigned) {
  *context = new emuPartition{description->multiprocessors};
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  delete context;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx, unsigned flags, int priority) {
  return cudaStreamCreateWithPriority(stream, flags, priority) == cudaSuccess ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* result) {
  const struct {
    const char* name;
    void* function;
  } all[] = {
      {"cuDeviceGet", reinterpret_cast<void*>(cuDeviceGet)},
      {"cuDeviceGetDevResource", reinterpret_cast<void*>(cuDeviceGetDevResource)},
      {"cuDevSmResourceSplitByCount", reinterpret_cast<void*>(cuDevSmResourceSplitByCount)},
      {"cuDevResourceGenerateDesc", reinterpret_cast<void*>(cuDevResourceGenerateDesc)},
      {"cuGreenCtxCreate", reinterpret_cast<void*>(cuGreenCtxCreate)},
      {"cuGreenCtxDestroy", reinterpret_cast<void*>(cuGreenCtxDestroy)},
      {"cuGreenCtxStreamCreate", reinterpret_cast<void*>(cuGreenCtxStreamCreate)},
  };
  *function = nullptr;
  *result = cudaDriverEntryPointSymbolNotFound;
  for (const auto& f : all) {
    if (driverVersion < int32_t(version) || strcmp(f.name, symbol) != 0) continue;
    *function = f.function;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
