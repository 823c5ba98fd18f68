// Stands for the header of this name of the CUDA toolkit: what partitions need of the driver.
#pragma once

#include "cuda_runtime_api.h"

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915
};
enum CUdevResourceType { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 };
enum { CU_GREEN_CTX_DEFAULT_STREAM = 1, CU_STREAM_NON_BLOCKING = 1 };

typedef int CUdevice;
typedef struct emuStream* CUstream;
typedef struct emuPartition* CUgreenCtx;
typedef struct emuDescription* CUdevResourceDesc;

struct CUdevResource {
  CUdevResourceType type;
  struct {
    unsigned smCount;
  } sm;
  unsigned split;  // that it came from; 0: it is whole
};

CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type);
CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned flags, unsigned least);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count);
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                          unsigned flags);
CUresult cuGreenCtxDestroy(CUgreenCtx context);
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags, int priority);
