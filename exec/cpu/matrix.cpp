#include "matrix.h"

#include <string.h>

#include "../native/native.h"
#include "bf16.h"

namespace cpu {

namespace {

// The bits of element i, wherever source lies: a mapped file may align it to nothing.
uint16_t halfAt(const void* source, int64_t i) {
  uint16_t half;
  memcpy(&half, static_cast<const char*>(source) + i * int64_t(sizeof half), sizeof half);
  return half;
}

// Writes bf16 source[depth]. A pair of inputs of a column lies side by side; pairs follow one another a line
// apart.
void packColumn(const Packed& shape, int64_t column, const void* source) {
  constexpr int64_t pairBytes = 2 * sizeof(uint16_t), line = 2 * tileColumns;
  uint16_t* tiles = const_cast<uint16_t*>(shape.tiles);
  uint16_t* out = tiles + shape.offset(column, 0);
  const char* in = static_cast<const char*>(source);
  int64_t k = 0;
  for (; k + tileDepth <= shape.depth; k += tileDepth, out += blockTiles * tileElements) {
    for (int64_t r = 0; r < tileLines; r++, in += pairBytes) memcpy(out + r * line, in, pairBytes);
  }
  for (; k < shape.depth; k++) tiles[shape.offset(column, k)] = halfAt(source, k);
}

}  // namespace

bool Format::int8() const { return weights == TR_WEIGHTS_INT8; }

Activations takeActivations(Carver& carver, const Format& format, int64_t rows, int64_t depth) {
  Activations a = {};
  a.stride = packedShape(1, depth).paddedDepth() + tileDepth;
  a.halves = carver.take<uint16_t>(rows * a.stride);
  if (!format.int8()) return a;
  const PackedInt8 shape = packedInt8Shape(1, depth, format.groupInputs);
  a.bytes.stride = shape.paddedDepth() + int8TileDepth;
  a.bytes.values = carver.take<int8_t>(rows * a.bytes.stride);
  a.bytes.groups = carver.take<RowGroup>(rows * shape.groups);
  return a;
}

Matrix takeMatrix(Carver& carver, const Format& format, int64_t columns, int64_t depth) {
  Matrix m = {};
  m.int8 = format.int8();
  if (m.int8) {
    m.bytes = packedInt8Shape(columns, depth, format.groupInputs);
    m.bytes.memory = carver.take<uint8_t>(m.bytes.bytes());
  } else {
    m.halves = packedShape(columns, depth);
    m.halves.tiles = carver.take<uint16_t>(m.halves.bytes() / int64_t(sizeof(uint16_t)));
  }
  return m;
}

void convert(int32_t type, const void* source, int64_t count, float* out) {
  switch (type) {
    case TR_BF16:
      for (int64_t i = 0; i < count; i++) out[i] = widen(halfAt(source, i));
      return;
    case TR_F16:
      for (int64_t i = 0; i < count; i++) out[i] = native::widenF16(halfAt(source, i));
      return;
    default:
      memcpy(out, source, size_t(count) * sizeof(float));
  }
}

void putColumn(const Matrix& matrix, int64_t column, int32_t type, const void* source, PutScratch& scratch) {
  const int64_t depth = matrix.depth();
  if (type == TR_BF16 && !matrix.int8) {
    packColumn(matrix.halves, column, source);
    return;
  }
  scratch.floats.resize(size_t(depth));
  convert(type, source, depth, scratch.floats.data());
  if (matrix.int8) {
    packColumns(matrix.bytes, column, 1, scratch.floats.data(), const_cast<uint8_t*>(matrix.bytes.memory));
    return;
  }
  scratch.halves.resize(size_t(depth));
  for (size_t k = 0; k < size_t(depth); k++) scratch.halves[k] = narrow(scratch.floats[k]);
  packColumn(matrix.halves, column, scratch.halves.data());
}

void columnOf(const Matrix& matrix, int64_t column, float* out) {
  if (matrix.int8) return gatherColumn(matrix.bytes, column, out);
  gatherColumn(matrix.halves, column, out);
}

void prepare(Path path, const Matrix& matrix, const Activations& x, int64_t begin, int64_t end) {
  if (matrix.int8) quantiseRows(path, matrix.bytes, x.halves, x.stride, begin, end, x.bytes);
}

void multiply(Path path, const Matrix& matrix, int64_t begin, int64_t end, const Activations& x, int64_t rows,
              float* y, int64_t yStride) {
  if (begin == end) return;
  if (matrix.int8) {
    PackedInt8 part = matrix.bytes;
    part.memory = part.block(begin);
    part.blocks = end - begin;
    part.columns = part.paddedColumns();
    gemmInt8Blocks(path)(GemmInt8{rows, x.bytes, part, y, yStride}, 0, part.blocks);
    return;
  }
  Packed part = matrix.halves;
  part.tiles = part.block(begin);
  part.blocks = end - begin;
  part.columns = part.paddedColumns();
  gemmBlocks(path)(Gemm{rows, x.halves, x.stride, part, y, yStride}, 0, part.blocks);
}

}  // namespace cpu
