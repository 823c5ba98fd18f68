// Captured steps: one graph for every size of batch that is in use.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include <map>
#include <vector>

namespace cuda {

// Sizes to which batches are padded, ascending.
using GraphSizes = std::vector<int32_t>;

// Few enough to be captured, near enough to waste little.
inline GraphSizes usualRows() { return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}; }
inline GraphSizes usualHeads() { return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}; }

// The smallest of them that is n or more, 0 if there is none; n 0 gives 0.
inline int64_t graphSizeOf(const GraphSizes& sizes, int64_t n) {
  for (int64_t size : sizes) {
    if (n > 0 && size >= n) return size;
  }
  return 0;
}

// Graphs by rows and heads of a padded batch.
class Graphs {
 public:
  Graphs() = default;
  ~Graphs() { clear(); }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // The graph of a size, null before it is captured.
  cudaGraphExec_t of(int64_t rows, int64_t heads) const {
    const auto found = graphs_.find({rows, heads});
    return found == graphs_.end() ? nullptr : found->second;
  }

  void put(int64_t rows, int64_t heads, cudaGraphExec_t graph) { graphs_[{rows, heads}] = graph; }

  int32_t count() const { return int32_t(graphs_.size()); }

  void clear() {
    for (const auto& entry : graphs_) cudaGraphExecDestroy(entry.second);
    graphs_.clear();
  }

  int64_t captureNs = 0, bytes = 0;  // of all that were ever captured

 private:
  std::map<std::pair<int64_t, int64_t>, cudaGraphExec_t> graphs_;
};

}  // namespace cuda
