#include "packed.h"

#include <new>

namespace cpu {

Packed packedShape(int64_t columns, int64_t depth) {
  int64_t blocks = (columns + blockColumns - 1) / blockColumns, steps = (depth + tileDepth - 1) / tileDepth;
  return {columns, depth, blocks, steps, nullptr};
}

void pack(const Packed& shape, const uint16_t* source, uint16_t* tiles) {
  for (int64_t column = 0; column < shape.columns; column++) {
    const uint16_t* row = source + column * shape.depth;
    for (int64_t k = 0; k < shape.depth; k++) tiles[shape.offset(column, k)] = row[k];
  }
}

PackedWeights* PackedWeights::make(int64_t columns, int64_t depth, const uint16_t* source) {
  PackedWeights* made = new (std::nothrow) PackedWeights;
  if (!made) return nullptr;
  made->view_ = packedShape(columns, depth);
  if (!made->memory_.allocate(size_t(made->view_.bytes()))) {
    delete made;
    return nullptr;
  }
  uint16_t* tiles = static_cast<uint16_t*>(made->memory_.data());
  pack(made->view_, source, tiles);
  made->view_.tiles = tiles;
  return made;
}

}  // namespace cpu
