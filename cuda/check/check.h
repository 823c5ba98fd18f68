// What checks of kernels share: random numbers, memory of the device, and what to do about a failure.
#pragma once

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>
#include <vector>

#include "../../exec/native/halves.h"

#define CHECK(condition, ...)                                       \
  do {                                                              \
    if (condition) break;                                           \
    fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
    fprintf(stderr, __VA_ARGS__);                                   \
    fprintf(stderr, "\n");                                          \
    exit(1);                                                        \
  } while (false)

#define CHECK_CUDA(call)                                                            \
  do {                                                                              \
    const cudaError_t failed = (call);                                              \
    CHECK(failed == cudaSuccess, "%s gives %s", #call, cudaGetErrorString(failed)); \
  } while (false)

namespace check {

// Random numbers that another seed makes others.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t below(int64_t n) { return int64_t(bits() % uint64_t(n)); }

  // About normal: the sum of four uniform ones.
  float next(float deviation = 1) {
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += float(bits() >> 40) * 0x1p-24f - 0.5f;
    return sum * 1.7320508f * deviation;
  }
  std::vector<float> floats(int64_t count, float deviation = 1) {
    std::vector<float> v(static_cast<size_t>(count));
    for (float& f : v) f = next(deviation);
    return v;
  }
  std::vector<uint16_t> halves(int64_t count, float deviation = 1);

 private:
  uint64_t state_;
};

inline std::vector<uint16_t> Numbers::halves(int64_t count, float deviation) {
  std::vector<uint16_t> v(static_cast<size_t>(count));
  for (uint16_t& h : v) h = native::narrow(next(deviation));
  return v;
}

// The stream that all checks use.
inline cudaStream_t stream() {
  static cudaStream_t made = [] {
    cudaStream_t s;
    CHECK_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }();
  return made;
}

// Memory of the device. What is not given is filled with bytes of ones: NaN, or -1.
template <class T>
class Memory {
 public:
  explicit Memory(int64_t count) : count_(count) {
    void* data;
    CHECK_CUDA(cudaMalloc(&data, bytes()));
    data_ = static_cast<T*>(data);
    CHECK_CUDA(cudaMemsetAsync(data_, 0xff, bytes(), stream()));
    CHECK_CUDA(cudaStreamSynchronize(stream()));
  }
  explicit Memory(const std::vector<T>& values) : Memory(int64_t(values.size())) {
    write(values.data(), bytes());
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() { return data_; }

  // Replaces the first bytes.
  void write(const T* values, size_t count) {
    CHECK_CUDA(cudaMemcpyAsync(data_, values, count, cudaMemcpyHostToDevice, stream()));
    CHECK_CUDA(cudaStreamSynchronize(stream()));
  }

  // What is there when all that was launched is done.
  std::vector<T> read() {
    std::vector<T> values(static_cast<size_t>(count_));
    CHECK_CUDA(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream()));
    CHECK_CUDA(cudaStreamSynchronize(stream()));
    return values;
  }

 private:
  size_t bytes() const { return size_t(count_) * sizeof(T); }

  int64_t count_;
  T* data_;
};

// Each checks the kernels of one header.
void rows(uint64_t seed);
void products(uint64_t seed);
void library(uint64_t seed);  // where there is one
void attention(uint64_t seed);
void logits(uint64_t seed);
void router(uint64_t seed);

}  // namespace check
