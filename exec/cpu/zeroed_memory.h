// Large blocks of memory, zero at first.
#pragma once

#include <stddef.h>

namespace cpu {

// ZeroedMemory owns one block. Blocks of 2 MiB and more lie in huge pages where Linux has them; smaller ones
// are aligned to a cache line.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  ~ZeroedMemory();
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;

  // Allocates bytes, once; false if there is no memory.
  bool allocate(size_t bytes);
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t mapped_ = 0;  // bytes that were mapped, 0 for a small block
  void* base_ = nullptr;
};

}  // namespace cpu
