// Activations of 8 bits.
#pragma once

#include <stdint.h>

#include "packed_int8.h"
#include "paths.h"

namespace cpu {

// RowGroup is what the inputs of one row share, in the groups of the weights: the activation is value *
// scale, by the rules of packed_int8.h. offset is 128 * the sum of the values: the excess of a sum of
// products with bytes that are 128 too large.
struct RowGroup {
  float scale;
  int32_t offset;
};

// QuantisedRows are the activations of a product: values[rows][stride] and groups[rows][weights.groups].
struct QuantisedRows {
  int8_t* values;
  int64_t stride;  // at least weights.paddedDepth(); 64 more spares the nearest cache
  RowGroup* groups;
};

// Quantises rows begin to end - 1 of x[rows][xStride] for products with weights of the given shape (its
// memory is not read), and fills up with zeros to paddedDepth. All paths write the same bits. A row depends
// on nothing but itself: a NaN or an infinity makes the scale of its group NaN.
void quantiseRows(Path path, const PackedInt8& shape, const uint16_t* x, int64_t xStride, int64_t begin,
                  int64_t end, const QuantisedRows& out);  // bf16
void quantiseRows(Path path, const PackedInt8& shape, const float* x, int64_t xStride, int64_t begin,
                  int64_t end, const QuantisedRows& out);

// The leaves of quantiseRows: one row.
struct QuantiseKernels {
  void (*halves)(const PackedInt8& shape, const uint16_t* x, int8_t* values, RowGroup* groups);
  void (*floats)(const PackedInt8& shape, const float* x, int8_t* values, RowGroup* groups);
};

}  // namespace cpu
