#include "partition.h"

#include <string.h>

#include <map>
#include <mutex>
#include <vector>

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

// The multiprocessors of a card in the smallest groups that a partition can be made of. The driver splits the
// whole of a card only, and nothing that a split gave; but groups of one split may be joined.
struct Card {
  std::vector<CUdevResource> groups;
  std::vector<bool> taken;  // by group

  unsigned left() const {
    unsigned sum = 0;
    for (size_t i = 0; i < groups.size(); i++) sum += taken[i] ? 0 : groups[i].sm.smCount;
    return sum;
  }
};

std::mutex cardsMutex;
std::map<int, Card> cards;  // by ordinal

int32_t check(CUresult result, const char* call, tr_error* error) {
  if (result == CUDA_SUCCESS) return TR_OK;
  return fail(error, TR_UNSUPPORTED, "a part of the card's multiprocessors: %s gives error %d", call,
              int(result));
}

int32_t splitCard(const Driver& d, CUdevice device, Card* card, tr_error* error) {
  CUdevResource whole = {}, rest = {};
  unsigned count = 0;
  int32_t status =
      check(d.getResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource", error);
  auto split = [&](CUdevResource* groups) {
    if (status != TR_OK) return;
    status = check(d.split(groups, &count, &whole, &rest, 0, 1), "cuDevSmResourceSplitByCount", error);
  };
  split(nullptr);  // says how many there are
  card->groups.resize(count);
  split(card->groups.data());
  card->groups.resize(status == TR_OK ? count : 0);
  if (status == TR_OK && rest.sm.smCount > 0) card->groups.push_back(rest);
  card->taken.assign(card->groups.size(), false);
  if (status != TR_OK || !card->groups.empty()) return status;
  return fail(error, TR_UNSUPPORTED, "a part of the card's multiprocessors: there is no group of them");
}

}  // namespace

int32_t Partition::take(int ordinal, int32_t multiprocessors, tr_error* error) {
  const Driver d;
  if (d.missing) {
    return fail(error, TR_UNSUPPORTED, "a part of the card's multiprocessors: the driver has no %s",
                d.missing);
  }
  std::lock_guard<std::mutex> lock(cardsMutex);
  Card& card = cards[ordinal];
  CUdevice device;
  int32_t status = check(d.deviceGet(&device, ordinal), "cuDeviceGet", error);
  if (status == TR_OK && card.groups.empty()) status = splitCard(d, device, &card, error);
  if (status != TR_OK) return status;
  if (unsigned(multiprocessors) > card.left()) {
    return fail(error, TR_INVALID,
                "threads = %d multiprocessors: they go in groups of %u, and %u of the card are left",
                multiprocessors, card.groups[0].sm.smCount, card.left());
  }
  std::vector<CUdevResource> parts;
  int32_t sum = 0;
  for (size_t i = 0; sum < multiprocessors; i++) {
    if (card.taken[i]) continue;
    groups_.push_back(i);
    parts.push_back(card.groups[i]);
    sum += int32_t(card.groups[i].sm.smCount);
  }
  CUdevResourceDesc description;
  status = check(d.describe(&description, parts.data(), unsigned(parts.size())), "cuDevResourceGenerateDesc",
                 error);
  if (status == TR_OK) {
    status = check(d.create(&context_, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate",
                   error);
  }
  if (status != TR_OK) return status;
  for (size_t i : groups_) card.taken[i] = true;
  ordinal_ = ordinal;
  multiprocessors_ = sum;
  return TR_OK;
}

Partition::~Partition() {
  if (!context_) return;
  Driver().destroy(context_);
  std::lock_guard<std::mutex> lock(cardsMutex);
  for (size_t i : groups_) cards[ordinal_].taken[i] = false;
}

int32_t Partition::makeStream(int priority, cudaStream_t* stream, tr_error* error) const {
  CUstream made;
  const int32_t status = check(Driver().makeStream(&made, context_, CU_STREAM_NON_BLOCKING, priority),
                               "cuGreenCtxStreamCreate", error);
  if (status == TR_OK) *stream = made;
  return status;
}

}  // namespace cuda
