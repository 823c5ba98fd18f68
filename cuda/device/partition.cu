#include "partition.h"

#include <string.h>

#include <map>
#include <mutex>

#include "../../exec/native/failure.h"

namespace cuda {

using native::fail;

namespace {

// The driver's functions, by the types that cuda.h declares them with.
struct Driver {
  decltype(&cuDeviceGet) deviceGet;
  decltype(&cuDeviceGetDevResource) getResource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  decltype(&cuGreenCtxDestroy) destroy;
  decltype(&cuGreenCtxStreamCreate) makeStream;
  const char* missing = nullptr;  // the first of them that the driver lacks

  Driver() {
    find("cuDeviceGet", &deviceGet);
    find("cuDeviceGetDevResource", &getResource);
    find("cuDevSmResourceSplitByCount", &split);
    find("cuDevResourceGenerateDesc", &describe);
    find("cuGreenCtxCreate", &create);
    find("cuGreenCtxDestroy", &destroy);
    find("cuGreenCtxStreamCreate", &makeStream);
  }

 private:
  template <class F>
  void find(const char* name, F* function) {
    constexpr unsigned since = 12040;  // the version of CUDA that brought them
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t failed =
        cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &result);
    if (!missing && (failed != cudaSuccess || result != cudaDriverEntryPointSuccess)) missing = name;
    memcpy(function, &found, sizeof found);
  }
};

// What is left of a card.
struct Rest {
  CUdevResource resource;
  int partitions;
};

std::mutex restsMutex;
std::map<int, Rest> rests;  // by ordinal

int32_t check(CUresult result, const char* call, tr_error* error) {
  if (result == CUDA_SUCCESS) return TR_OK;
  return fail(error, TR_UNSUPPORTED, "a part of the card's multiprocessors: %s gives error %d", call,
              int(result));
}

}  // namespace

int32_t Partition::take(int ordinal, int32_t multiprocessors, tr_error* error) {
  const Driver d;
  if (d.missing) {
    return fail(error, TR_UNSUPPORTED, "a part of the card's multiprocessors: the driver has no %s",
                d.missing);
  }
  std::lock_guard<std::mutex> lock(restsMutex);
  CUdevice device;
  int32_t status = check(d.deviceGet(&device, ordinal), "cuDeviceGet", error);
  Rest rest = rests.count(ordinal) ? rests[ordinal] : Rest{};
  if (status == TR_OK && rest.partitions == 0) {
    status = check(d.getResource(device, &rest.resource, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource",
                   error);
  }
  if (status != TR_OK) return status;
  const unsigned left = rest.resource.sm.smCount;
  if (unsigned(multiprocessors) > left) {
    return fail(error, TR_INVALID, "threads = %d multiprocessors, and %u of the card are left",
                multiprocessors, left);
  }
  CUdevResource part = {}, remaining = {};
  unsigned groups = 1;
  status = check(d.split(&part, &groups, &rest.resource, &remaining, 0, unsigned(multiprocessors)),
                 "cuDevSmResourceSplitByCount", error);
  CUdevResourceDesc description;
  if (status == TR_OK) status = check(d.describe(&description, &part, 1), "cuDevResourceGenerateDesc", error);
  if (status == TR_OK) {
    status = check(d.create(&context_, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate",
                   error);
  }
  if (status != TR_OK) return status;
  rests[ordinal] = {remaining, rest.partitions + 1};
  ordinal_ = ordinal;
  multiprocessors_ = int32_t(part.sm.smCount);
  return TR_OK;
}

Partition::~Partition() {
  if (!context_) return;
  Driver().destroy(context_);
  std::lock_guard<std::mutex> lock(restsMutex);
  rests[ordinal_].partitions--;  // with the last the card is whole again
}

int32_t Partition::makeStream(int priority, cudaStream_t* stream, tr_error* error) const {
  CUstream made;
  const int32_t status = check(Driver().makeStream(&made, context_, CU_STREAM_NON_BLOCKING, priority),
                               "cuGreenCtxStreamCreate", error);
  if (status == TR_OK) *stream = made;
  return status;
}

}  // namespace cuda
