// A card and the memory that models on it share.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "../../exec/native/budget.h"
#include "graphs.h"
#include "partition.h"

namespace cuda {

// Tokens of a KV page that this device likes best.
constexpr int32_t pageTokensBest = 16;

int32_t deviceCount(int32_t* count, tr_error* error);
int32_t deviceInfo(int32_t ordinal, tr_device_info* info, tr_error* error);

// Fails with TR_FAILED, or TR_NO_MEMORY, unless a call of the runtime succeeded.
int32_t checked(cudaError_t result, const char* call, tr_error* error);

class Device {
 public:
  static int32_t open(const tr_device_options& options, Device** out, tr_error* error);

  // Makes the card the calling thread's, which may be another one each time.
  int32_t enter(tr_error* error) const;

  // A stream for one more model: work of the first one of a device goes before that of the others.
  int32_t makeStream(cudaStream_t* stream, tr_error* error);

  int multiprocessors() const { return multiprocessors_; }
  bool graphs() const { return graphs_; }
  bool ownProducts() const { return ownProducts_; }
  const GraphSizes& graphRows() const { return graphRows_; }
  const GraphSizes& graphHeads() const { return graphHeads_; }

  native::Budget& budget() { return budget_; }

 private:
  int32_t readKernels(const char* words, tr_error* error);

  int ordinal_ = 0, multiprocessors_ = 0;
  bool graphs_ = true, ownProducts_ = false, hasStream_ = false;
  GraphSizes graphRows_, graphHeads_;
  Partition partition_;
  native::Budget budget_;
};

// Memory of the card, or of the host where the card can reach it.
class Block {
 public:
  enum Where { onCard, onHost };

  Block() = default;
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  int32_t allocate(Where where, int64_t bytes, tr_error* error);
  void free();
  void* data() const { return data_; }

 private:
  Where where_ = onCard;
  void* data_ = nullptr;
};

}  // namespace cuda
