// Many arrays in one block of memory.
#pragma once

#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace native {

// Carver deals out the parts of a block one after another, each aligned to a cache line. Without a block it
// only counts, so that the same code says how large the block must be and divides it.
class Carver {
 public:
  // apart: under the address sanitizer nothing must touch what lies between two parts. Not so where they are
  // copied together.
  explicit Carver(void* block, bool apart = true) : block_(static_cast<char*>(block)), apart_(apart) {}

  // count elements of T; null without a block. A sum beyond bytesMax stays there.
  template <class T>
  T* take(int64_t count) {
    T* part = block_ ? reinterpret_cast<T*>(block_ + bytes_) : nullptr;
    int64_t bytes;
    if (__builtin_mul_overflow(count, int64_t(sizeof(T)), &bytes) || bytes > bytesMax - bytes_) {
      bytes_ = bytesMax;
      return part;
    }
    bytes_ += (bytes + cacheLine - 1) / cacheLine * cacheLine;
    if (apart_) fence(part, bytes);
    if (bytes_ > bytesMax) bytes_ = bytesMax;
    return part;
  }

  int64_t bytes() const { return bytes_; }

  static constexpr int64_t bytesMax = int64_t(1) << 60;

 private:
  static constexpr int64_t cacheLine = 64;

#if defined(__SANITIZE_ADDRESS__)
  // What lies between a part and the next must not be touched.
  void fence(void* part, int64_t bytes) {
    bytes_ += cacheLine;
    if (!part) return;
    char* end = static_cast<char*>(part) + bytes;
    __asan_poison_memory_region(end, size_t(block_ + bytes_ - end));
  }
#else
  void fence(void*, int64_t) {}
#endif

  char* block_;
  bool apart_;
  int64_t bytes_ = 0;
};

}  // namespace native
