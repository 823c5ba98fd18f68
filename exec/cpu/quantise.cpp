#include "quantise.h"

#include "lane_kernels.h"

namespace cpu {

void quantiseRows(Path path, const PackedInt8& shape, const uint16_t* x, int64_t xStride, int64_t begin,
                  int64_t end, const QuantisedRows& out) {
  auto row = laneKernels(path).quantise.halves;
  for (int64_t m = begin; m < end; m++) {
    row(shape, x + m * xStride, out.values + m * out.stride, out.groups + m * shape.groups);
  }
}

void quantiseRows(Path path, const PackedInt8& shape, const float* x, int64_t xStride, int64_t begin,
                  int64_t end, const QuantisedRows& out) {
  auto row = laneKernels(path).quantise.floats;
  for (int64_t m = begin; m < end; m++) {
    row(shape, x + m * xStride, out.values + m * out.stride, out.groups + m * shape.groups);
  }
}

}  // namespace cpu
