// The weights of a model on the device, and where each tensor of a checkpoint goes.
#pragma once

#include <stdint.h>

#include <vector>

#include "../../exec/native/carver.h"
#include "../kernels/gemm.h"
#include "shape.h"

namespace cuda {

// Weights of one layer. Tensors that are read together lie in one matrix: queries, keys and values, head by
// head; gate and then up. Vectors that a model does not have are null.
struct LayerWeights {
  Matrix qkv, o, gateUp, down;
  float *inputNorm, *postNorm, *qNorm, *kNorm;
  float *qkvBias, *oBias, *gateUpBias, *downBias;  // in the order of the matrix's columns
};

struct Linear {
  Matrix matrix;
  float* bias;
};

struct RouterBlock {
  float *norm, *normBias;
  Linear first, second;
};

struct RouterWeights {
  Linear top, combined, in;
  std::vector<RouterBlock> blocks;  // of CITER one, of which it has first
  float *outNorm, *outNormBias, *out, *outBias;
};

struct Weights {
  std::vector<LayerWeights> layers;
  Matrix embedding, head;  // the same if they are tied
  float* finalNorm;
  double* frequencies;           // radians a position, by pair
  std::vector<int32_t> windows;  // by layer; on the host
  RouterWeights router;
};

// Takes room for all weights of a shape.
void takeWeights(native::Carver& carver, const Shape& shape, Weights* weights);

// Place is where a tensor goes: row i of a matrix to row first + i / run * stride + i % run, and its column k
// to k / columnRun * columnStride + k % columnRun; number i of a vector likewise by row.
struct Place {
  int64_t rows, columns;  // of the tensor
  const Matrix* matrix;   // or null, and
  void* vector;           // of elements of type
  int32_t type;           // TR_F32, or what a vector that is no weight must have
  int64_t first, run, stride;
  int64_t columnRun, columnStride;

  int64_t at(int64_t i) const { return first + i / run * stride + i % run; }
};

// The place of a tensor of native.h, its layer in range. False if a model of this shape does not have it.
bool placeOf(const Shape& shape, Weights& weights, int32_t tensor, int32_t layer, Place* place);

// The layers that a tensor is put for: those of the model, or of its router, or 1.
int32_t tensorLayers(const Shape& shape, int32_t tensor);

}  // namespace cuda
