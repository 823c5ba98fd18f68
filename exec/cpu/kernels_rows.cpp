#include "bf16.h"
#include "kernels.h"
#include "kernels_checks.h"
#include "lane_kernels.h"

using namespace cpu;

namespace {

int32_t checkRows(int32_t path, int64_t rows, int64_t width, int64_t padded) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  return within(rows, 1, sizeMax) && within(width, 1, sizeMax) && within(padded, width, sizeMax) ? 0 : EINVAL;
}

const RowKernels& rowsOf(int32_t path) { return laneKernels(Path(path)).rows; }

}  // namespace

int32_t cpu_norm(cpu_workers* workers, int32_t path, int64_t rows, float* x, const float* delta,
                 const float* weight, float epsilon, int64_t width, uint16_t* out, int64_t padded) {
  int32_t failed = checkRows(path, rows, width, padded);
  if (failed) return failed;
  auto norm = rowsOf(path).norm;
  return forEach(*of(workers), rows, [&](int64_t i) {
    const float* change = delta ? delta + i * width : nullptr;
    norm(x + i * width, change, weight, epsilon, width, out + i * padded, padded);
  });
}

int32_t cpu_swiglu(cpu_workers* workers, int32_t path, int64_t rows, const float* gate_up, int64_t width,
                   uint16_t* out, int64_t padded) {
  int32_t failed = checkRows(path, rows, width, padded);
  if (failed) return failed;
  auto swiglu = rowsOf(path).swiglu;
  return forEach(*of(workers), rows, [&](int64_t i) {
    const float* gate = gate_up + 2 * i * width;
    swiglu(gate, gate + width, width, out + i * padded, padded);
  });
}

int32_t cpu_round(cpu_workers* workers, int32_t path, int64_t rows, const float* x, int64_t width,
                  uint16_t* out, int64_t padded) {
  int32_t failed = checkRows(path, rows, width, padded);
  if (failed) return failed;
  auto round = rowsOf(path).round;
  return forEach(*of(workers), rows,
                 [&](int64_t i) { round(x + i * width, width, out + i * padded, padded); });
}

int32_t cpu_add(cpu_workers* workers, int32_t path, int64_t rows, float* x, const float* bias,
                int64_t width) {
  int32_t failed = checkRows(path, rows, width, width);
  if (failed) return failed;
  auto add = rowsOf(path).add;
  return forEach(*of(workers), rows, [&](int64_t i) { add(x + i * width, bias, width); });
}

int32_t cpu_rotate(cpu_workers* workers, int32_t path, int64_t rows, int64_t heads, int64_t dim, float* x,
                   const float* weight, float epsilon, const int32_t* positions, int64_t table,
                   const float* cosines, const float* sines) {
  int32_t failed = checkRows(path, rows, dim, dim);
  if (failed) return failed;
  if (dim % 2 || !within(heads, 1, sizeMax)) return EINVAL;
  for (int64_t i = 0; i < rows; i++) {
    if (!within(positions[i], 0, table - 1)) return EINVAL;
  }
  auto rotate = rowsOf(path).rotate;
  return forEach(*of(workers), rows * heads, [&](int64_t i) {
    int64_t at = positions[i / heads] * (dim / 2);
    rotate(x + i * dim, weight, epsilon, cosines + at, sines + at, dim);
  });
}

void cpu_norm_reference(double* x, const float* delta, const float* weight, double epsilon, int64_t width,
                        double* out) {
  normReference(x, delta, weight, epsilon, width, out);
}

void cpu_swiglu_reference(const float* gate_up, int64_t width, double* out) {
  swigluReference(gate_up, gate_up + width, width, out);
}

void cpu_rotate_reference(const float* x, const float* weight, double epsilon, const float* cosines,
                          const float* sines, int64_t dim, double* out) {
  rotateReference(x, weight, epsilon, cosines, sines, dim, out);
}

double cpu_rounded_tolerance(void) { return roundedTolerance; }

double cpu_rotate_tolerance(void) { return rotateTolerance; }

uint16_t cpu_narrow(float f) { return narrow(f); }

int32_t cpu_gather(const cpu_weights* weights, const int32_t* columns, int64_t count, float* out) {
  const Packed& w = of(weights)->view();
  for (int64_t i = 0; i < count; i++) {
    if (!within(columns[i], 0, w.columns - 1)) return EINVAL;
  }
  for (int64_t i = 0; i < count; i++) gatherColumn(w, columns[i], out + i * w.depth);
  return 0;
}
