// What kernels are made of. The same source is compiled for a card and, with cuda/emu in place of the
// toolkit's headers, for the processor.
#pragma once

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace cuda {

constexpr int warpThreads = 32;
constexpr unsigned wholeWarp = 0xffffffffu;

// The block's shared memory. A kernel asks for it once, in one piece.
template <class T>
__device__ __forceinline__ T& sharedMemory() {
#if defined(TOKENROUTER_EMULATED)
  return *static_cast<T*>(emu::sharedMemory(sizeof(T)));
#else
  __shared__ T shared;
  return shared;
#endif
}

// Adds a launch to a stream. What earlier calls of this thread have left behind is not taken for its error.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, int threads, cudaStream_t stream,
                   const Arguments&... arguments) {
#if defined(TOKENROUTER_EMULATED)
  emu::Inside inside;
  return emu::launch(stream, grid, threads, [=] { kernel(arguments...); });
#else
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(unsigned(threads));
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
#endif
}

__host__ __device__ __forceinline__ float widen(uint16_t half) {
  const uint32_t bits = uint32_t(half) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// Rounds to the nearest bf16, ties to even; a NaN stays a NaN.
__device__ __forceinline__ uint16_t narrow(float f) {
#if defined(TOKENROUTER_EMULATED)
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
#else
  uint16_t half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(f));
  return half;
#endif
}

// Two of them, low in the lower half.
__device__ __forceinline__ uint32_t narrowPair(float low, float high) {
#if defined(TOKENROUTER_EMULATED)
  return uint32_t(narrow(high)) << 16 | narrow(low);
#else
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}

// Sixteen bytes that are read once: they need not stay near.
__device__ __forceinline__ uint4 loadOnce(const uint16_t* from) {
#if defined(TOKENROUTER_EMULATED)
  uint4 v;
  memcpy(&v, from, sizeof v);
  return v;
#else
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
#endif
}

// Sixteen bytes.
__device__ __forceinline__ uint4 loadFour(const uint16_t* from) {
  return *reinterpret_cast<const uint4*>(from);
}

// d += a * b of the whole warp, a 16 x 16, b 16 x 8, in the fragments of mma.m16n8k16 (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"). With group = lane / 4 and pair = lane % 4: a[0] row group, a[1] row group +
// 8, both of depth 2 * pair and the next, a[2] and a[3] of depth 8 more; b[0] and b[1] column group of the
// same depths; d[0], d[1] row group, columns 2 * pair and the next, d[2], d[3] row group + 8.
__device__ __forceinline__ void multiplyTiles(float d[4], const uint32_t a[4], const uint32_t b[2]) {
#if defined(TOKENROUTER_EMULATED)
  emu::multiplyTiles(d, a, b);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Threads for a row that a block takes: few for narrow ones.
inline int threadsFor(int64_t width, int most) {
  const int64_t threads = (width / 4 + warpThreads - 1) / warpThreads * warpThreads;
  return threads < warpThreads ? warpThreads : threads > most ? most : int(threads);
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Largest {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// join over a warp; every lane gets it.
template <class T, class Join>
__device__ __forceinline__ T acrossWarp(T value, Join join) {
  for (int mask = warpThreads / 2; mask > 0; mask /= 2) {
    value = join(value, __shfl_xor_sync(wholeWarp, value, mask));
  }
  return value;
}

// join over a block of whole warps, in one order; every thread gets it. scratch has an entry a warp.
template <class T, class Join>
__device__ __forceinline__ T acrossBlock(T value, Join join, T* scratch) {
  value = acrossWarp(value, join);
  const int warps = int(blockDim.x) / warpThreads, lane = int(threadIdx.x) % warpThreads;
  __syncthreads();  // what was in scratch has been read
  if (lane == 0) scratch[threadIdx.x / warpThreads] = value;
  __syncthreads();
  T all = scratch[0];
  for (int i = 1; i < warps; i++) all = join(all, scratch[i]);
  return all;
}

}  // namespace cuda
