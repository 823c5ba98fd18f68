#include "packed_int8.h"

#include <math.h>
#include <string.h>

#include <new>

#include "bf16.h"

// A fused multiplication and addition would round once where other machines round twice.
#pragma GCC optimize("fp-contract=off")

namespace cpu {

namespace {

inline float wide(float f) { return f; }
inline float wide(uint16_t b) { return widen(b); }

template <class T>
uint32_t largestMagnitude(const T* source, int64_t count) {
  int32_t largest = 0;
  for (int64_t k = 0; k < count; k++) {
    float f = wide(source[k]);
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return uint32_t(largest);
}

// Writes the weights of one column and one step, of which source has count.
template <class T>
void packStep(const T* source, int64_t count, float inverse, uint8_t* tile) {
  uint8_t bytes[int8TileDepth];
  memset(bytes, int8Zero, sizeof bytes);
  if (inverse != 0) {
    for (int64_t i = 0; i < count; i++) {
      float shifted = wide(source[i]) * inverse + int8Rounder;
      int32_t bits;
      memcpy(&bits, &shifted, sizeof bits);
      bytes[i] = uint8_t(bits - int8RounderBits + int8Zero);
    }
  }
  for (int line = 0; line < tileLines; line++) memcpy(tile + line * int8LineBytes, bytes + 4 * line, 4);
}

template <class T>
void packRows(const PackedInt8& shape, int64_t first, int64_t count, const T* source, uint8_t* memory) {
  for (int64_t column = first; column < first + count; column++, source += shape.depth) {
    for (int64_t group = 0; group < shape.groups; group++) {
      int64_t begin = group * shape.groupSteps * int8TileDepth;
      int64_t end = begin + shape.stepsOf(group) * int8TileDepth;
      if (end > shape.depth) end = shape.depth;
      Int8Scale s = int8ScaleOf(largestMagnitude(source + begin, end - begin));
      memcpy(memory + shape.scaleOffset(column, group), &s.scale, sizeof s.scale);
      for (int64_t k = begin; k < end; k += int8TileDepth) {
        int64_t inputs = end - k < int8TileDepth ? end - k : int8TileDepth;
        packStep(source + k, inputs, s.inverse, memory + shape.offset(column, k));
      }
    }
  }
}

}  // namespace

Int8Scale int8ScaleOf(uint32_t magnitudeBits) {
  if (magnitudeBits >= 0x7f800000u) return {NAN, 0};
  float magnitude;
  memcpy(&magnitude, &magnitudeBits, sizeof magnitude);
  if (magnitude < int8LeastMagnitude) return {0, 0};
  return {magnitude / int8Max, int8Max / magnitude};
}

bool int8GroupFits(int64_t depth, int64_t groupInputs) {
  int64_t inputs = groupInputs ? groupInputs : depth;
  return groupInputs >= 0 && groupInputs % int8TileDepth == 0 && inputs <= int8GroupMax;
}

PackedInt8 packedInt8Shape(int64_t columns, int64_t depth, int64_t groupInputs) {
  int64_t blocks = (columns + blockColumns - 1) / blockColumns;
  int64_t steps = (depth + int8TileDepth - 1) / int8TileDepth;
  int64_t groupSteps = groupInputs ? groupInputs / int8TileDepth : steps;
  return {columns, depth, blocks, steps, groupSteps, (steps + groupSteps - 1) / groupSteps, nullptr};
}

void packColumns(const PackedInt8& shape, int64_t first, int64_t count, const uint16_t* source,
                 uint8_t* memory) {
  packRows(shape, first, count, source, memory);
}

void packColumns(const PackedInt8& shape, int64_t first, int64_t count, const float* source,
                 uint8_t* memory) {
  packRows(shape, first, count, source, memory);
}

PackedInt8Weights* PackedInt8Weights::make(int64_t columns, int64_t depth, int64_t groupInputs,
                                           const uint16_t* source) {
  PackedInt8Weights* made = new (std::nothrow) PackedInt8Weights;
  if (!made) return nullptr;
  made->view_ = packedInt8Shape(columns, depth, groupInputs);
  if (!made->memory_.allocate(size_t(made->view_.bytes()))) {
    delete made;
    return nullptr;
  }
  uint8_t* memory = static_cast<uint8_t*>(made->memory_.data());
  packColumns(made->view_, 0, columns, source, memory);
  made->view_.memory = memory;
  return made;
}

void gatherColumn(const PackedInt8& weights, int64_t column, float* out) {
  for (int64_t k = 0; k < weights.depth; k++) {
    float scale;
    int64_t group = k / int8TileDepth / weights.groupSteps;
    memcpy(&scale, weights.memory + weights.scaleOffset(column, group), sizeof scale);
    out[k] = float(weights.memory[weights.offset(column, k)] - int8Zero) * scale;
  }
}

}  // namespace cpu
