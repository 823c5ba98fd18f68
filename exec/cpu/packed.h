// Weights in the order in which the kernels read them.
#pragma once

#include <stdint.h>

#include "zeroed_memory.h"

namespace cpu {

// A block is 64 output columns; a tile is 32 inputs x 16 columns of bf16, 1 KiB: 16 lines of 64 bytes, line r
// with inputs 2r and 2r + 1 of each column side by side. That is the B operand of TDPBF16PS and VDPBF16PS.
constexpr int blockColumns = 64, tileColumns = 16, tileDepth = 32, tileLines = 16;
constexpr int tileElements = tileDepth * tileColumns;
constexpr int blockTiles = blockColumns / tileColumns;

// Packed is a weight matrix of columns outputs and depth inputs as [columns/64][depth/32][4 tiles], rounded
// up and filled with zeros.
struct Packed {
  int64_t columns, depth;
  int64_t blocks, steps;  // columns / 64 and depth / 32, rounded up
  const uint16_t* tiles;

  int64_t paddedColumns() const { return blocks * blockColumns; }
  int64_t paddedDepth() const { return steps * tileDepth; }
  int64_t bytes() const { return paddedColumns() * paddedDepth() * int64_t(sizeof(uint16_t)); }
  const uint16_t* block(int64_t b) const { return tiles + b * steps * blockTiles * tileElements; }

  // Where the weight of output column and input k lies in tiles. The one of an odd k follows that of k - 1.
  int64_t offset(int64_t column, int64_t k) const {
    int64_t step = column / blockColumns * steps + k / tileDepth;
    int64_t tile = step * blockTiles + column % blockColumns / tileColumns;
    return tile * tileElements + k % tileDepth / 2 * (2 * tileColumns) + column % tileColumns * 2 + k % 2;
  }
};

// The shape of a packed matrix without its tiles.
Packed packedShape(int64_t columns, int64_t depth);

// Writes source, bf16 [columns][depth] row by row as in a checkpoint, to tiles, which has shape.bytes()
// bytes, already zero.
void pack(const Packed& shape, const uint16_t* source, uint16_t* tiles);

// PackedWeights owns a packed matrix.
class PackedWeights {
 public:
  // Returns null if there is no memory.
  static PackedWeights* make(int64_t columns, int64_t depth, const uint16_t* source);
  const Packed& view() const { return view_; }

 private:
  PackedWeights() = default;
  ZeroedMemory memory_;
  Packed view_;
};

}  // namespace cpu
