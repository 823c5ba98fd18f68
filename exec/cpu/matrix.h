// A weight matrix in whichever form the model keeps it.
#pragma once

#include <stdint.h>

#include <vector>

#include "../native/carver.h"
#include "gemm.h"
#include "gemm_int8.h"
#include "packed.h"
#include "packed_int8.h"
#include "paths.h"
#include "rows.h"

namespace cpu {

using native::Carver;

// The form: TR_WEIGHTS_BF16 or TR_WEIGHTS_INT8, and inputs of a scale.
struct Format {
  int32_t weights;
  int64_t groupInputs;

  bool int8() const;
};

// What goes into products: rows of activations with strides that spare the nearest cache. Products with
// weights of 8 bits take the second form, which is made of the first.
struct Activations {
  uint16_t* halves;
  int64_t stride;
  QuantisedRows bytes;

  uint16_t* row(int64_t m) const { return halves + m * stride; }
};

// Takes room for rows of inputs to matrices of at most this depth.
Activations takeActivations(Carver& carver, const Format& format, int64_t rows, int64_t depth);

// Matrix is columns outputs of depth inputs, in blocks of 64 columns.
struct Matrix {
  bool int8;
  Packed halves;  // one of them is there
  PackedInt8 bytes;

  int64_t columns() const { return int8 ? bytes.columns : halves.columns; }
  int64_t depth() const { return int8 ? bytes.depth : halves.depth; }
  int64_t blocks() const { return int8 ? bytes.blocks : halves.blocks; }
  int64_t blockBytes() const { return int8 ? bytes.blockBytes() : halves.bytes() / halves.blocks; }
};

// Takes room for a matrix, which is zero.
Matrix takeMatrix(Carver& carver, const Format& format, int64_t columns, int64_t depth);

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

// Makes rows begin to end - 1 of x, bf16 with zeros up to the padded depth, ready for a product.
void prepare(Path path, const Matrix& matrix, const Activations& x, int64_t begin, int64_t end);

// y[m][c] = the products of rows rows of x with the columns of blocks begin to end - 1, of which the first is
// y's first. Blocks run on the calling worker.
void multiply(Path path, const Matrix& matrix, int64_t begin, int64_t end, const Activations& x, int64_t rows,
              float* y, int64_t yStride);

// source[count] of an element type of native.h as float32.
void convert(int32_t type, const void* source, int64_t count, float* out);

}  // namespace cpu
