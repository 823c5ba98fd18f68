// Stands for cuBLASLt: the functions that the device uses, for the one kind of product that it makes.
#include <stdio.h>
#include <string.h>

#include "../../exec/native/halves.h"
#include "emu.h"

namespace {

constexpr int success = 0, invalid = 7;

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t stride;
};

// Of cublasLt.h.
enum { real32F = 0, real16BF = 14, compute32F = 68, transposeA = 3, workspaceBytes = 1, alignmentA = 5 };

int create(void** handle) {
  *handle = new int;
  return success;
}

int destroy(void* handle) {
  delete static_cast<int*>(handle);
  return success;
}

size_t version() { return 130000; }

int descCreate(void** desc, int compute, int scale) {
  if (compute != compute32F || scale != real32F) return invalid;
  *desc = new int(0);
  return success;
}

int descSet(void* desc, int attribute, const void* value, size_t bytes) {
  if (attribute != transposeA || bytes != sizeof(int)) return invalid;
  memcpy(desc, value, bytes);
  return success;
}

int layoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  if (stride < int64_t(rows)) return invalid;
  *layout = new Layout{type, rows, columns, stride};
  return success;
}

int layoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return success;
}

int preferenceSet(void*, int attribute, const void*, size_t bytes) {
  return attribute == workspaceBytes             ? (bytes == 8 ? success : invalid)
         : attribute >= alignmentA && bytes == 4 ? success
                                                 : invalid;
}

struct Result {
  uint64_t algorithm[8];
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};

// Only column-major c = transposed(a) * b of bf16, summed and kept in fp32.
bool sound(int desc, const Layout& a, const Layout& b, const Layout& c) {
  return desc == 1 && a.type == real16BF && b.type == real16BF && c.type == real32F && a.rows == b.rows &&
         a.columns == c.rows && b.columns == c.columns;
}

int heuristic(void*, void* desc, void* a, void* b, void* c, void* d, void*, int most, Result* results,
              int* found) {
  *found = 0;
  if (most < 1 || c != d ||
      !sound(*static_cast<int*>(desc), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
             *static_cast<Layout*>(c)))
    return invalid;
  *results = {};
  *found = 1;
  return success;
}

// The terms of eight sums take turns, which the compiler makes one instruction of.
float dot(const uint16_t* x, const uint16_t* y, int64_t count) {
  float sums[8] = {};
  for (int64_t k = 0; k < count; k += 8) {
    for (int64_t i = 0; i < 8; i++) sums[i] += native::widen(x[k + i]) * native::widen(y[k + i]);
  }
  float sum = 0;
  for (float s : sums) sum += s;
  return sum;
}

int matmul(void*, void* desc, const void* alpha, const void* a, void* aLayout, const void* b, void* bLayout,
           const void* beta, const void* c, void* cLayout, void* d, void*, const void*, void* workspace,
           size_t, cudaStream_t stream) {
  const Layout weights = *static_cast<Layout*>(aLayout), inputs = *static_cast<Layout*>(bLayout),
               outputs = *static_cast<Layout*>(cLayout);
  if (!sound(*static_cast<int*>(desc), weights, inputs, outputs) || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0 || c != d || !workspace || weights.rows % 8 != 0)
    return invalid;
  emu::Inside inside;
  const cudaError_t failed = emu::enqueue(
      stream,
      [=] {
        for (uint64_t row = 0; row < inputs.columns; row++) {
          const uint16_t* x = static_cast<const uint16_t*>(b) + int64_t(row) * inputs.stride;
          float* y = static_cast<float*>(d) + int64_t(row) * outputs.stride;
          for (uint64_t i = 0; i < weights.columns; i++) {
            const uint16_t* column = static_cast<const uint16_t*>(a) + int64_t(i) * weights.stride;
            y[i] = dot(column, x, int64_t(weights.rows));
          }
        }
      },
      true);
  constexpr int executionFailed = 13;
  return failed == cudaSuccess ? success : executionFailed;
}

int preferenceCreate(void** preference) { return create(preference); }

}  // namespace

namespace cuda {

void* ltFunction(const char* name) {
  const struct {
    const char* name;
    void* function;
  } all[] = {
      {"cublasLtCreate", reinterpret_cast<void*>(create)},
      {"cublasLtDestroy", reinterpret_cast<void*>(destroy)},
      {"cublasLtGetVersion", reinterpret_cast<void*>(version)},
      {"cublasLtMatmulDescCreate", reinterpret_cast<void*>(descCreate)},
      {"cublasLtMatmulDescSetAttribute", reinterpret_cast<void*>(descSet)},
      {"cublasLtMatmulDescDestroy", reinterpret_cast<void*>(destroy)},
      {"cublasLtMatrixLayoutCreate", reinterpret_cast<void*>(layoutCreate)},
      {"cublasLtMatrixLayoutDestroy", reinterpret_cast<void*>(layoutDestroy)},
      {"cublasLtMatmulPreferenceCreate", reinterpret_cast<void*>(preferenceCreate)},
      {"cublasLtMatmulPreferenceSetAttribute", reinterpret_cast<void*>(preferenceSet)},
      {"cublasLtMatmulPreferenceDestroy", reinterpret_cast<void*>(destroy)},
      {"cublasLtMatmulAlgoGetHeuristic", reinterpret_cast<void*>(heuristic)},
      {"cublasLtMatmul", reinterpret_cast<void*>(matmul)},
  };
  for (const auto& f : all) {
    if (strcmp(f.name, name) == 0) return f.function;
  }
  return nullptr;
}

}  // namespace cuda
