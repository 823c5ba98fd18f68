#include "kernels_int8.h"

#include <errno.h>
#include <string.h>

#include "gemm_int8.h"
#include "kernels_checks.h"
#include "stream.h"

using namespace cpu;

namespace {

const PackedInt8Weights* of(const cpu_int8_weights* w) {
  return reinterpret_cast<const PackedInt8Weights*>(w);
}

RowGroup* of(cpu_row_group* groups) {
  static_assert(sizeof(RowGroup) == sizeof(cpu_row_group), "one layout");
  return reinterpret_cast<RowGroup*>(groups);
}

template <class T>
int32_t packSome(cpu_int8_weights* weights, int64_t first, int64_t count, const T* source) {
  const PackedInt8& w = of(weights)->view();
  if (!within(first, 0, w.columns - 1) || !within(count, 1, w.columns - first)) return EINVAL;
  packColumns(w, first, count, source, const_cast<uint8_t*>(w.memory));
  return 0;
}

template <class T>
int32_t quantise(cpu_workers* workers, int32_t path, const cpu_int8_weights* weights, int64_t rows,
                 const T* x, int64_t x_stride, const QuantisedRows& out) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  const PackedInt8& w = of(weights)->view();
  if (!within(rows, 1, sizeMax) || !within(x_stride, w.depth, 2 * sizeMax) ||
      !within(out.stride, w.paddedDepth(), 2 * sizeMax)) {
    return EINVAL;
  }
  return forEach(*cpu::of(workers), rows,
                 [&](int64_t m) { quantiseRows(Path(path), w, x, x_stride, m, m + 1, out); });
}

}  // namespace

int32_t cpu_int8_weights_open(int64_t columns, int64_t depth, int64_t group_inputs, const uint16_t* source,
                              cpu_int8_weights** out) {
  *out = nullptr;
  if (!within(columns, 1, sizeMax) || !within(depth, 1, sizeMax) || !int8GroupFits(depth, group_inputs)) {
    return EINVAL;
  }
  PackedInt8Weights* made = PackedInt8Weights::make(columns, depth, group_inputs, source);
  if (!made) return ENOMEM;
  *out = reinterpret_cast<cpu_int8_weights*>(made);
  return 0;
}

void cpu_int8_weights_close(cpu_int8_weights* weights) { delete of(weights); }

int64_t cpu_int8_bytes(const cpu_int8_weights* weights) { return of(weights)->view().bytes(); }

int64_t cpu_int8_groups(const cpu_int8_weights* weights) { return of(weights)->view().groups; }

int32_t cpu_int8_pack(cpu_int8_weights* weights, int64_t first, int64_t count, const uint16_t* source) {
  return packSome(weights, first, count, source);
}

int32_t cpu_int8_pack_floats(cpu_int8_weights* weights, int64_t first, int64_t count, const float* source) {
  return packSome(weights, first, count, source);
}

int32_t cpu_int8_equal(const cpu_int8_weights* a, const cpu_int8_weights* b) {
  const PackedInt8 &x = of(a)->view(), &y = of(b)->view();
  return x.bytes() == y.bytes() && memcmp(x.memory, y.memory, size_t(x.bytes())) == 0;
}

int32_t cpu_int8_quantise(cpu_workers* workers, int32_t path, const cpu_int8_weights* weights, int64_t rows,
                          const uint16_t* x, int64_t x_stride, int8_t* values, int64_t stride,
                          cpu_row_group* row_groups) {
  return quantise(workers, path, weights, rows, x, x_stride, {values, stride, of(row_groups)});
}

int32_t cpu_int8_quantise_floats(cpu_workers* workers, int32_t path, const cpu_int8_weights* weights,
                                 int64_t rows, const float* x, int64_t x_stride, int8_t* values,
                                 int64_t stride, cpu_row_group* row_groups) {
  return quantise(workers, path, weights, rows, x, x_stride, {values, stride, of(row_groups)});
}

int32_t cpu_int8_gemm(cpu_workers* workers, int32_t path, int64_t rows, int8_t* values, int64_t stride,
                      cpu_row_group* row_groups, const cpu_int8_weights* weights, float* y,
                      int64_t y_stride) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  const PackedInt8& w = of(weights)->view();
  if (!within(rows, 1, sizeMax) || !within(stride, w.paddedDepth(), 2 * sizeMax) ||
      !within(y_stride, w.paddedColumns(), 2 * sizeMax)) {
    return EINVAL;
  }
  GemmInt8 g{rows, {values, stride, of(row_groups)}, w, y, y_stride};
  return gemmInt8(*cpu::of(workers), Path(path), g) ? 0 : EBUSY;
}

int32_t cpu_int8_gemm_reference(int64_t rows, int8_t* values, int64_t stride, cpu_row_group* row_groups,
                                const cpu_int8_weights* weights, double* y, double* magnitude) {
  const PackedInt8& w = of(weights)->view();
  if (!within(rows, 1, sizeMax) || !within(stride, w.depth, 2 * sizeMax)) return EINVAL;
  gemmInt8Reference(GemmInt8{rows, {values, stride, of(row_groups)}, w, nullptr, 0}, y, magnitude);
  return 0;
}

double cpu_int8_gemm_tolerance(void) { return gemmInt8Tolerance; }

int32_t cpu_int8_stream(cpu_workers* workers, const cpu_int8_weights* weights, uint64_t* sum) {
  const PackedInt8& w = of(weights)->view();
  return streamSum(*cpu::of(workers), w.memory, w.bytes(), sum) ? 0 : EBUSY;
}

int32_t cpu_int8_gather(const cpu_int8_weights* weights, const int32_t* columns, int64_t count, float* out) {
  const PackedInt8& w = of(weights)->view();
  for (int64_t i = 0; i < count; i++) {
    if (!within(columns[i], 0, w.columns - 1)) return EINVAL;
  }
  for (int64_t i = 0; i < count; i++) gatherColumn(w, columns[i], out + i * w.depth);
  return 0;
}
