#include "zeroed_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace cpu {

namespace {

constexpr size_t hugePage = 2u << 20;
constexpr size_t cacheLine = 64;

}  // namespace

bool ZeroedMemory::allocate(size_t bytes) {
  if (data_ || bytes > SIZE_MAX - 2 * hugePage) return false;
  if (bytes < hugePage) {
    size_t rounded = (bytes + cacheLine - 1) / cacheLine * cacheLine;
    data_ = aligned_alloc(cacheLine, rounded ? rounded : cacheLine);
    if (data_) memset(data_, 0, rounded);
    return data_ != nullptr;
  }
  size_t length = bytes + hugePage;
  void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return false;
  base_ = base;
  mapped_ = length;
  uintptr_t first = (reinterpret_cast<uintptr_t>(base) + hugePage - 1) / hugePage * hugePage;
  data_ = reinterpret_cast<void*>(first);
  madvise(data_, bytes, MADV_HUGEPAGE);  // a wish: without it everything works, slower
  return true;
}

ZeroedMemory::~ZeroedMemory() {
  if (mapped_) {
    munmap(base_, mapped_);
  } else {
    free(data_);
  }
}

}  // namespace cpu
