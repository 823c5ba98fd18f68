// Stands for the header of this name of the CUDA toolkit: what kernels need, on the processor. One fiber is
// one thread; the blocks of a grid run one after another, and the threads of a block take turns, both in an
// order that is drawn anew each time. Barriers and exchanges within a warp are where a thread waits for
// others; a block whose threads wait for ever ends the process with a message.
#pragma once

#include <math.h>
#include <string.h>

#include <functional>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

namespace emu {

// Where the running thread is.
struct Place {
  dim3 thread, block, blockSize, grid;
  int lane;
};
extern __thread Place* here;
inline Place& place() { return *here; }

// How deep this thread is in the emulation, and a guard for its functions.
extern __thread int inside;
struct Inside {
  Inside() { inside++; }
  ~Inside() { inside--; }
};

// Adds a launch to a stream.
cudaError_t launch(cudaStream_t stream, dim3 grid, int threads, std::function<void()> kernel);

// The block's shared memory, the same for all its threads, filled with bytes of ones when its first thread
// comes. A kernel asks for it once, in one piece.
void* sharedMemory(size_t bytes);

void syncThreads();
void syncWarp();

// What the thread of a lane of this warp gives in the same call.
uint64_t exchange(uint64_t value, int fromLane);

// d += a * b of the whole warp, in the fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"): a and b pairs of bf16.
void multiplyTiles(float d[4], const uint32_t a[4], const uint32_t b[2]);

// How many launches this thread has added to streams, those of a graph counted when it is launched.
long launches();

template <class T>
T shuffle(T value, int fromLane) {
  static_assert(sizeof value <= sizeof(uint64_t), "a thread gives eight bytes at most");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, fromLane);
  memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace emu

#define threadIdx (emu::place().thread)
#define blockIdx (emu::place().block)
#define blockDim (emu::place().blockSize)
#define gridDim (emu::place().grid)

inline void __syncthreads() { emu::syncThreads(); }
inline void __syncwarp() { emu::syncWarp(); }
inline void __threadfence() {}

// Only whole warps: every thread of one must come.
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emu::shuffle(value, emu::place().lane ^ mask);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emu::shuffle(value, lane & 31);
}
inline int __all_sync(unsigned, int condition) {
  for (int mask = 16; mask > 0; mask /= 2) condition &= __shfl_xor_sync(~0u, condition, mask);
  return condition;
}

template <class T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at += value;
  return before;
}

// The product is kept from being fused with a sum.
inline double __dmul_rn(double a, double b) {
  volatile double product = a * b;
  return product;
}
inline double __dadd_rn(double a, double b) { return a + b; }

inline float __expf(float x) { return expf(x); }
