// The weights of a model and where each tensor of a checkpoint goes.
#pragma once

#include <stdint.h>

#include <vector>

#include "../native/carver.h"
#include "../native/native.h"
#include "../native/tensors.h"
#include "matrix.h"
#include "shape.h"

namespace cpu {

using native::Carver;
using native::tensorMax;
using native::tensorName;

// Weights of one layer. Tensors that are read together lie in one matrix: queries, keys and values, head by
// head; gate and up in blocks of 64 columns that take turns, so that a worker has both of what it multiplies.
// Vectors that a model does not have are null.
struct LayerWeights {
  Matrix qkv, o, gateUp, down;
  float *inputNorm, *postNorm, *qNorm, *kNorm;
  float *qkvBias, *oBias, *gateUpBias, *downBias;  // in the order of the matrix's columns
};

struct Weights {
  std::vector<LayerWeights> layers;
  Matrix embedding, head;  // the same if they are tied
  float* finalNorm;
  double* frequencies;  // radians a position, by pair
  int32_t* windows;     // by layer
};

// Takes room for all weights of a shape, in the order in which a step reads them.
void takeWeights(Carver& carver, const Shape& shape, Weights* weights);

// Place is where a tensor goes: row i of a matrix to a column of it, or number i of a vector to a place in
// it, which is first + i / run * stride + i % run.
struct Place {
  int64_t rows, columns;  // of the tensor
  const Matrix* matrix;   // or null, and
  void* vector;           // of elements of type
  int32_t type;           // TR_F32, or what a vector that is no weight must have
  int64_t first, run, stride;

  int64_t at(int64_t i) const { return first + i / run * stride + i % run; }
};

// The place of a tensor of native.h, its layer in range. False if a model of this shape does not have it.
bool placeOf(const Shape& shape, const Weights& weights, int32_t tensor, int32_t layer, Place* place);

// The layers that a tensor is put for: those of the model, or 1.
int32_t tensorLayers(const Shape& shape, int32_t tensor);

}  // namespace cpu
