// The functions of cuda.h: a card of as many multiprocessors as cudaGetDeviceProperties says, of which parts
// are multiples of two.
#include "include/cuda.h"

#include <string.h>

#include <atomic>

#include "faults.h"

struct emuDescription {
  unsigned multiprocessors;
};

struct emuPartition {
  unsigned multiprocessors;
};

static std::atomic<bool> hasPartitions{true};

void emu_partitions(int32_t known) { hasPartitions = known != 0; }

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  *resource = {type, {unsigned(properties.multiProcessorCount)}};
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned, unsigned least) {
  const unsigned part = (least + 1) / 2 * 2;
  if (*groups != 1 || part > input->sm.smCount) return CUDA_ERROR_INVALID_VALUE;
  *result = {CU_DEV_RESOURCE_TYPE_SM, {part}};
  *remaining = {CU_DEV_RESOURCE_TYPE_SM, {input->sm.smCount - part}};
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  if (count != 1) return CUDA_ERROR_INVALID_VALUE;
  thread_local emuDescription made;
  made.multiprocessors = resources->sm.smCount;
  *description = &made;
  return CUDA_SUCCESS;
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

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
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
    if (!hasPartitions || strcmp(f.name, symbol) != 0) continue;
    *function = f.function;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
