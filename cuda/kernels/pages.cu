#include "pages.h"

#include "common.cuh"

namespace cuda {

namespace {

constexpr int pageThreads = 128;

__global__ void grantsKernel(Grants g) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= *g.count) return;
  g.tables[g.grants[i].slot * g.tablePages + g.grants[i].index] = g.grants[i].page;
}

}  // namespace

cudaError_t applyGrants(const Grants& g, int64_t grantsMax, cudaStream_t stream) {
  const unsigned blocks = unsigned((grantsMax + pageThreads - 1) / pageThreads);
  return launch(grantsKernel, dim3(blocks), pageThreads, stream, g);
}

}  // namespace cuda
