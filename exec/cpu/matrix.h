// A weight matrix in whichever form the model keeps it.
#pragma once

#include <stdint.h>

#include <vector>

#include "carver.h"
#include "gemm.h"
#include "packed.h"
#include "paths.h"
#include "rows.h"

namespace cpu {

// What goes into products: rows of activations with strides that spare the nearest cache.
struct Activations {
  uint16_t* halves;
  int64_t stride;

  uint16_t* row(int64_t m) const { return halves + m * stride; }
};

// Takes room for rows of inputs to matrices of at most this depth.
Activations takeActivations(Carver& carver, int64_t rows, int64_t depth);

// Matrix is columns outputs of depth inputs, in blocks of 64 columns.
struct Matrix {
  Packed halves;

  int64_t columns() const { return halves.columns; }
  int64_t depth() const { return halves.depth; }
  int64_t blocks() const { return halves.blocks; }
  int64_t paddedColumns() const { return halves.paddedColumns(); }
  int64_t paddedDepth() const { return halves.paddedDepth(); }
};

// Takes room for a matrix, which is zero.
Matrix takeMatrix(Carver& carver, int64_t columns, int64_t depth);

// Converted numbers of one column on their way.
struct PutScratch {
  std::vector<float> floats;
  std::vector<uint16_t> halves;
};

// Converts and packs one output column, source[depth] of an element type of native.h: TR_BF16, TR_F16 or
// TR_F32, aligned to nothing. Calls for different columns may run at the same time.
void putColumn(const Matrix& matrix, int64_t column, int32_t type, const void* source, PutScratch& scratch);

// The weights of one output column as float32.
void columnOf(const Matrix& matrix, int64_t column, float* out);

// y[m][c] = the products of rows rows of x with the columns of blocks begin to end - 1, of which the first is
// y's first. Blocks run on the calling worker.
void multiply(Path path, const Matrix& matrix, int64_t begin, int64_t end, const Activations& x, int64_t rows,
              float* y, int64_t yStride);

// source[count] of an element type of native.h as float32.
void convert(int32_t type, const void* source, int64_t count, float* out);

}  // namespace cpu
