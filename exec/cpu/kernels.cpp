#include "kernels.h"

#include <errno.h>

#include "gemm.h"
#include "kernels_checks.h"
#include "memory.h"
#include "stream.h"

using namespace cpu;

int32_t cpu_best_path(void) { return int32_t(bestPath()); }

int64_t cpu_memory_free_bytes(const char* meminfo, const char* group_folder) {
  return memoryFreeBytes(meminfo, group_folder);
}

int32_t cpu_workers_open(int32_t threads, const int32_t* processors, cpu_workers** out) {
  Workers* made;
  int failed = Workers::open(threads, processors, &made);
  *out = reinterpret_cast<cpu_workers*>(made);
  return failed;
}

void cpu_workers_close(cpu_workers* workers) { delete of(workers); }

int32_t cpu_weights_open(int64_t columns, int64_t depth, const uint16_t* source, cpu_weights** out) {
  *out = nullptr;
  if (!within(columns, 1, sizeMax) || !within(depth, 1, sizeMax)) return EINVAL;
  PackedWeights* made = PackedWeights::make(columns, depth, source);
  if (!made) return ENOMEM;
  *out = reinterpret_cast<cpu_weights*>(made);
  return 0;
}

void cpu_weights_close(cpu_weights* weights) { delete of(weights); }

int32_t cpu_gemm(cpu_workers* workers, int32_t path, int64_t rows, const uint16_t* x, int64_t x_stride,
                 const cpu_weights* weights, float* y, int64_t y_stride) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  const Packed& w = of(weights)->view();
  if (!within(rows, 1, sizeMax) || !within(x_stride, w.paddedDepth(), 2 * sizeMax) ||
      !within(y_stride, w.paddedColumns(), 2 * sizeMax)) {
    return EINVAL;
  }
  return gemm(*of(workers), Path(path), Gemm{rows, x, x_stride, w, y, y_stride}) ? 0 : EBUSY;
}

int32_t cpu_gemm_reference(int64_t rows, const uint16_t* x, int64_t x_stride, const cpu_weights* weights,
                           double* y, double* magnitude) {
  const Packed& w = of(weights)->view();
  if (!within(rows, 1, sizeMax) || !within(x_stride, w.depth, 2 * sizeMax)) return EINVAL;
  gemmReference(Gemm{rows, x, x_stride, w, nullptr, 0}, y, magnitude);
  return 0;
}

double cpu_gemm_tolerance(void) { return gemmTolerance; }

int32_t cpu_stream(cpu_workers* workers, const cpu_weights* weights, uint64_t* sum) {
  const Packed& w = of(weights)->view();
  return streamSum(*of(workers), w.tiles, w.bytes(), sum) ? 0 : EBUSY;
}
