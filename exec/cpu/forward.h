// The parts of a forward pass. Every worker calls all of them, in the same order.
#pragma once

#include <stdint.h>

#include "lane_kernels.h"
#include "model.h"
#include "step.h"

namespace cpu {

// Forward is one pass. Parts end where every worker must wait for all others; a part shares out whole rows,
// heads or columns, so that the number of workers changes no bit.
class Forward {
 public:
  // Lays out rows and requests of arguments that were admitted.
  Forward(Model& model, const StepArguments& arguments);

  // The whole pass; to be called by every worker inside a run.
  void operator()(int worker);

  int64_t rows() const { return rowCount_; }

 private:
  // Rows between attention and the end of a layer: all of them, or in the last layer those with a head.
  struct Rows {
    int64_t count;
    float* x;
  };

  void layOut();

  // What a worker does of each part: forward.cpp.
  void embed(int worker);
  void layer(int64_t l, int worker);
  void norm(const Rows& rows, const float* delta, const float* deltaBias, const float* weight,
            const Matrix& next, int worker);
  void product(const Matrix& matrix, const Activations& x, int64_t rows, float* y, int64_t yStride,
               int worker);
  void rotateAndStore(int64_t l, int worker);
  void attend(int64_t l, int worker);
  void gather(const Matrix& o, const Rows& rows, int worker);
  void gateAndUp(const LayerWeights& w, int64_t rows, int worker);
  void barrier(int worker) { workers_.barrier(worker); }

  // After the last layer: head.cpp.
  void head(int worker);
  void logits(int worker);
  void finish(int64_t head, int worker);
  void route(int worker);
  void fillRouter(int64_t head, int32_t token, const float* logits, Candidate* scratch);
  int32_t pick(int64_t request, float* logits, const LogitsStatistics& statistics, Candidate* scratch);
  void bias(int64_t request, float* logits);
  void restore(int64_t request, float* logits);
  int32_t listTop(int64_t request, const float* logits, const LogitsStatistics& statistics,
                  Candidate* scratch);

  bool last(int64_t l) const { return l + 1 == shape_.layers(); }
  KVPages pages(int64_t l) const;

  const Shape& shape_;
  const Weights& weights_;
  const tr_limits& limits_;
  const Router* router_;
  Work& work_;
  Workers& workers_;
  const Path path_;
  const LaneKernels& kernels_;
  const StepArguments& arguments_;
  int64_t rowCount_ = 0, headCount_ = 0;
};

}  // namespace cpu
