// Weights of 8 bits in the order in which the kernels read them.
#pragma once

#include <stdint.h>

#include "packed.h"
#include "zeroed_memory.h"

namespace cpu {

// A weight is a whole number q from -127 to 127 times a scale, which the weights of one output column share:
// all of them, or a group of inputs that follow one another. scale = largest magnitude / 127, q = weight /
// scale rounded to nearest: the error is half a scale at most. A group with a NaN or an infinity has scale
// NaN. One without a magnitude of int8LeastMagnitude (1.5e-36) is zero.
//
// A byte is q + 128, without sign: every instruction for products of bytes takes one factor so, and what the
// 128 adds to a product depends on the activations alone (RowGroup::offset in gemm_int8.h).
//
// A tile is 64 inputs x 16 columns, 1 KiB: 16 lines of 64 bytes, line r with inputs 4r to 4r + 3 of each
// column side by side. That is an operand of TDPBSUD and of VPDPBUSD.
constexpr int int8TileDepth = 64, int8TileBytes = int8TileDepth * tileColumns;
constexpr int int8LineBytes = 64, int8StepBytes = blockTiles * int8TileBytes;
constexpr int int8ScaleBytes = blockColumns * int(sizeof(float));
constexpr int int8Max = 127, int8Zero = 128;
constexpr float int8LeastMagnitude = 0x1p-119f;  // 127 / magnitude and magnitude / 127 are normal numbers

// Int8Scale is a group's scale and what its numbers are multiplied with before they are rounded: 0 where all
// are to become 0.
struct Int8Scale {
  float scale, inverse;
};

// The scale of a group whose largest magnitude, as a float32 or a NaN, has these bits.
Int8Scale int8ScaleOf(uint32_t magnitudeBits);

// Adding 1.5 * 2^23 rounds a small number to the nearest whole one, ties to even, which the low bits then
// hold above those of 1.5 * 2^23 itself.
constexpr float int8Rounder = 12582912.0f;
constexpr int32_t int8RounderBits = 0x4b400000;

// Most inputs of a group, or of a column that is not divided: a sum of that many products fits 32 bits.
constexpr int64_t int8GroupMax = int64_t(1) << 17;

// PackedInt8 is a weight matrix of columns outputs and depth inputs as [columns/64][groups], rounded up. A
// group is its tiles, [inputs/64][4 tiles], and then its scales, one fp32 a column. All of it is read from
// front to back. Columns that fill up have scale 0.
struct PackedInt8 {
  int64_t columns, depth;
  int64_t blocks, steps;       // columns / 64 and depth / 64, rounded up
  int64_t groupSteps, groups;  // the last group may be shorter
  const uint8_t* memory;

  int64_t paddedColumns() const { return blocks * blockColumns; }
  int64_t paddedDepth() const { return steps * int8TileDepth; }
  int64_t blockBytes() const { return steps * int8StepBytes + groups * int8ScaleBytes; }
  int64_t bytes() const { return blocks * blockBytes(); }

  int64_t stepsOf(int64_t group) const {
    return group + 1 < groups ? groupSteps : steps - group * groupSteps;
  }
  const uint8_t* block(int64_t b) const { return memory + b * blockBytes(); }

  // Where the weight of output column and input k lies, and the scale of column and group; in bytes.
  int64_t offset(int64_t column, int64_t k) const {
    int64_t step = k / int8TileDepth, tile = step * blockTiles + column % blockColumns / tileColumns;
    return column / blockColumns * blockBytes() + tile * int8TileBytes + step / groupSteps * int8ScaleBytes +
           k % int8TileDepth / 4 * int8LineBytes + column % tileColumns * 4 + k % 4;
  }
  int64_t scaleOffset(int64_t column, int64_t group) const {
    int64_t tiles = (group * groupSteps + stepsOf(group)) * int8StepBytes;
    return column / blockColumns * blockBytes() + tiles + group * int8ScaleBytes +
           column % blockColumns * int64_t(sizeof(float));
  }
};

// Reports whether columns of depth inputs can be divided into groups of groupInputs: a multiple of 64, or 0
// for one scale a column; neither groups nor columns that are not divided longer than int8GroupMax.
bool int8GroupFits(int64_t depth, int64_t groupInputs);

// The shape of a packed matrix without its memory. groupInputs as int8GroupFits wants it.
PackedInt8 packedInt8Shape(int64_t columns, int64_t depth, int64_t groupInputs);

// Quantises source, [count][depth] row by row as in a checkpoint, into output columns first to first + count
// - 1. memory has shape.bytes() bytes, zero before the first call and aligned to 64. Calls for different
// columns may run at the same time, and their number does not change a bit.
void packColumns(const PackedInt8& shape, int64_t first, int64_t count, const uint16_t* source,
                 uint8_t* memory);  // bf16
void packColumns(const PackedInt8& shape, int64_t first, int64_t count, const float* source, uint8_t* memory);

// PackedInt8Weights owns a packed matrix.
class PackedInt8Weights {
 public:
  // From bf16 source[columns][depth]. Returns null if there is no memory.
  static PackedInt8Weights* make(int64_t columns, int64_t depth, int64_t groupInputs, const uint16_t* source);
  const PackedInt8& view() const { return view_; }

 private:
  PackedInt8Weights() = default;
  ZeroedMemory memory_;
  PackedInt8 view_;
};

// The weights of one output column as float32, q * scale, depth of them: what gatherColumn of rows.h does for
// bf16.
void gatherColumn(const PackedInt8& weights, int64_t column, float* out);

}  // namespace cpu
