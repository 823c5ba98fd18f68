// cuBLASLt, if this machine has it: it is found when the program runs, and never linked.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include <map>

#include "../../exec/native/native.h"
#include "../kernels/gemm.h"

namespace cuda {

// The function of this name of the library, null without one. Where it is looked for: lt_library.cu.
void* ltFunction(const char* name);

// The library's version, such as 130002; 0: there is none. The answer stays the same.
int64_t ltVersion();

// What it works in, for each model; 0 without it.
int64_t ltWorkspaceBytes();

// As cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  uint64_t data[8];
};

// Products of more rows than multiplyFew is for. Each model has its own, for its stream.
class Lt {
 public:
  Lt() = default;
  ~Lt();
  Lt(const Lt&) = delete;
  Lt& operator=(const Lt&) = delete;

  // Begins to use the library, with ltWorkspaceBytes() of memory of the device.
  int32_t open(void* workspace, tr_error* error);

  // Whether it makes products of so many rows.
  bool takes(int64_t rows) const { return handle_ && rows > skinnyRows; }

  // Adds a product to a stream. It may write and read rows up to the next multiple of skinnyRows. Bits of a
  // row depend on that number too. cudaErrorNotSupported: multiplyFew must do it.
  cudaError_t multiply(const Product& p, int64_t rows, cudaStream_t stream);

  // What the library said of the last product that failed, 0 if none did.
  int status() const { return status_; }

 private:
  // Everything about products of one size; what is null was not made. The column-major result is weights,
  // transposed, times inputs: [columns][rows].
  struct Plan {
    void *desc = nullptr, *weights = nullptr, *inputs = nullptr, *outputs = nullptr;
    LtAlgorithm algorithm = {};
    bool usable = false;
  };

  cudaError_t planOf(const Product& p, int64_t rows, const Plan** plan);
  int choose(const Product& p, int64_t rows, Plan* plan);

  struct Key {
    int64_t columns, depth, rows, xStride, yStride;
    bool operator<(const Key& k) const;
  };
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  int status_ = 0;
  std::map<Key, Plan> plans_;
};

}  // namespace cuda
