// The networks that judge a token of the small model from what its forward pass has left.
#pragma once

#include <stdint.h>

#include <memory>

#include "gemm.h"
#include "packed.h"
#include "paths.h"
#include "workers.h"
#include "zeroed_memory.h"

namespace cpu {

// R2R ("Roads to Rome", arXiv 2505.21600): probability that the token diverges,
//   sigmoid(output(norm(blocks(input(combined([h, e, top(z)])))))), a block being
//   x + second(gelu(first(norm(x)))),
// of the hidden row h after the last norm, the embedding e of the sampled token and the largest raw logits z,
// largest first. CITER (arXiv 2502.01976): confidence that the token is right,
//   sigmoid(output(relu(first(h)))),
// BatchNorm folded into first, the two linears after ReLU fused into output. Co-LLM (arXiv 2403.03870):
// probability of deferral,
//   sigmoid(output * h).
enum class RouterKind : int32_t { r2r = 1, citer = 2, collm = 3 };

// Sizes of a router; those that its kind has no use for are 0.
struct RouterShape {
  RouterKind kind;
  int64_t hidden;    // width of the small model
  int64_t top;       // R2R: logits that it reads. Published: 100
  int64_t width;     // R2R: of the backbone (1024). CITER: of the inner layer (2 * hidden)
  int64_t blocks;    // R2R (6)
  int64_t expanded;  // R2R: inside a block (4 * width)
};

// Tensors of a router, all row by row. R2R has all of them, CITER first and output with their biases, Co-LLM
// output. Those of a block are given block by block; CITER's first counts as block 0's.
enum class RouterTensor : int32_t {
  top = 1,       // [hidden][top]
  topBias,       // [1][hidden]
  combined,      // [width][3 * hidden]
  combinedBias,  // [1][width]
  input,         // [width][width]
  inputBias,     // [1][width]
  norm,          // block [1][width]
  normBias,      // block [1][width]
  first,         // block [expanded][width]; CITER: [width][hidden]
  firstBias,     // block [1][expanded]; CITER: [1][width]
  second,        // block [width][expanded]
  secondBias,    // block [1][width]
  outputNorm,    // [1][width]
  outputNormBias,  // [1][width]
  output,        // [1][width]; Co-LLM: [1][hidden]
  outputBias,    // [1][1]
};

constexpr int32_t routerTensorMax = int32_t(RouterTensor::outputBias);

// Bounds on |score - exact|, exact being the same network in double with the same weights, matrices rounded
// to bf16. The first is what rounding activations to bf16 before each product comes to; the second is
// Co-LLM's, whose one row stays fp32.
constexpr double routerTolerance = 0.005, deferralTolerance = 1e-6;

// What one evaluation is of. Strides are in elements, at least as long as a row.
struct RouterRows {
  int64_t rows;  // 1 or more
  const float* hidden;
  int64_t hiddenStride;
  const float* embeddings;  // R2R; else null
  int64_t embeddingStride;
  const float* logits;  // R2R: the shape's top largest of each row, largest first; else null
  int64_t logitStride;
};

// Router is one network with its weights: matrices as packed bf16, vectors and single rows as fp32. Once all
// tensors are put it is not changed any more, and several calls may evaluate it at the same time.
class Router {
 public:
  // An empty router. Returns 0, EINVAL for a shape that no router has, or ENOMEM.
  static int32_t make(const RouterShape& shape, std::unique_ptr<Router>* out);

  // What a router's weights take, for a valid shape.
  static int64_t weightBytes(const RouterShape& shape);

  // Copies one tensor. Returns 0, EINVAL for a tensor, block or size that the router does not have, or
  // ENOMEM.
  int32_t put(RouterTensor tensor, int64_t block, int64_t rows, int64_t columns, const float* data);

  // Whether every tensor has been put.
  bool complete() const { return missing_ == 0; }

  const RouterShape& shape() const { return shape_; }

  // Memory that evaluate needs for up to that many rows; scratch is aligned to 64 bytes.
  int64_t scratchBytes(int64_t rows) const;

  // Scores rows: scores[rows], 0 to 1. To be called by every worker inside one run of workers with the same
  // arguments, after a barrier if workers have just written what in points to. The scores are there after the
  // next barrier, or the end of the run. It allocates nothing. A score has the same bits in any batch and for
  // any number of workers. A NaN in a row makes its score NaN and no other's.
  void evaluate(Path path, Workers& workers, int worker, const RouterRows& in, void* scratch,
                double* scores) const;

 private:
  // Vectors are filled up with zeros to whole blocks of columns.
  struct Linear {
    std::unique_ptr<PackedWeights> weights;
    ZeroedMemory bias;
  };
  struct Norm {
    ZeroedMemory weight, bias;
  };
  struct Block {
    Norm norm;
    Linear first, second;
  };
  struct Place;    // where a tensor goes
  struct Buffers;  // parts of scratch
  struct Pass;     // what one worker does of one evaluation

  explicit Router(const RouterShape& shape) : shape_(shape) {}
  Place place(RouterTensor tensor, int64_t block);
  Buffers buffers(int64_t rows, void* scratch) const;

  RouterShape shape_;
  int64_t missing_ = 0;  // tensors that have not been put
  Linear top_, combined_, input_;
  std::unique_ptr<Block[]> blocks_;  // of CITER one, of which it has first
  Norm outputNorm_;
  ZeroedMemory output_, outputBias_;
};

}  // namespace cpu
