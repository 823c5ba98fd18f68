#include "../device/lt.h"
#include "../kernels/gemm.h"
#include "check.h"

namespace check {

namespace {

// The bits of a row must be the same alone and in a batch.
void product(Numbers& n, int64_t columns, int64_t depth, int64_t rows) {
  cuda::Matrix matrix = {nullptr, columns, depth};
  const int64_t stride = matrix.stride(), yStride = cuda::paddedColumns(columns) + 16;
  const int64_t memory = (rows + cuda::skinnyRows - 1) / cuda::skinnyRows * cuda::skinnyRows;
  std::vector<uint16_t> weights(size_t(matrix.elements()), 0), x(size_t(memory * stride), 0x7fc0);
  for (int64_t i = 0; i < columns; i++) {
    for (int64_t k = 0; k < depth; k++) weights[size_t(i * stride + k)] = native::narrow(n.next(0.05f));
  }
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t k = 0; k < stride; k++)
      x[size_t(m * stride + k)] = k < depth ? native::narrow(n.next()) : uint16_t(0);
  }
  Memory<uint16_t> w(weights), inputs(x);
  Memory<float> y(rows * yStride), alone(yStride);
  matrix.weights = w.data();
  CHECK_CUDA(cuda::multiplyFew({inputs.data(), stride, matrix, y.data(), yStride}, rows, stream()));
  const int64_t last = rows - 1;
  Memory<uint16_t> lastInput(16 * stride);
  lastInput.write(&x[size_t(last * stride)], size_t(stride) * sizeof(uint16_t));
  CHECK_CUDA(cuda::multiplyFew({lastInput.data(), stride, matrix, alone.data(), yStride}, 1, stream()));
  const std::vector<float> got = y.read(), one = alone.read();
  std::vector<double> want(static_cast<size_t>(columns)), magnitude(want);
  matrix.weights = weights.data();
  for (int64_t m = 0; m < rows; m++) {
    cuda::productReference(&x[size_t(m * stride)], matrix, want.data(), magnitude.data());
    for (int64_t i = 0; i < columns; i++) {
      const double off = double(got[size_t(m * yStride + i)]) - want[size_t(i)];
      CHECK(fabs(off) <= cuda::productTolerance * magnitude[size_t(i)],
            "%d x %d, row %d of %d, column %d: off by %g", int(columns), int(depth), int(m), int(rows),
            int(i), off);
    }
  }
  CHECK(memcmp(one.data(), &got[size_t(last * yStride)], size_t(columns) * 4) == 0, "row %d alone",
        int(last));
}

// What cuBLASLt makes is near to what multiplyFew does, and nothing is written beyond the padded rows.
void libraryProduct(Numbers& n, cuda::Lt& lt, int64_t columns, int64_t depth, int64_t rows) {
  cuda::Matrix matrix = {nullptr, columns, depth};
  const int64_t stride = matrix.stride(), yStride = cuda::paddedColumns(columns) + 16;
  const int64_t memory = (rows + cuda::skinnyRows - 1) / cuda::skinnyRows * cuda::skinnyRows;
  std::vector<uint16_t> weights = n.halves(matrix.elements(), 0.05f), x = n.halves(memory * stride);
  Memory<uint16_t> w(weights), inputs(x);
  Memory<float> y(memory * yStride), own(memory * yStride);
  matrix.weights = w.data();
  CHECK_CUDA(cuda::multiplyFew({inputs.data(), stride, matrix, own.data(), yStride}, rows, stream()));
  CHECK(lt.takes(rows), "%d rows", int(rows));
  const cuda::Product product = {inputs.data(), stride, matrix, y.data(), yStride};
  const cudaError_t made = lt.multiply(product, rows, stream());
  CHECK(made == cudaSuccess, "cuBLASLt: status %d", lt.status());
  const std::vector<float> got = y.read(), want = own.read();
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t i = 0; i < columns; i++) {
      const float a = got[size_t(m * yStride + i)], b = want[size_t(m * yStride + i)];
      // The terms are of deviation 0.05, and there are stride of them.
      CHECK(fabs(double(a) - double(b)) <= 2 * cuda::productTolerance * 0.05 * double(stride),
            "%d x %d, row %d of %d, column %d: %g and %g", int(columns), int(depth), int(m), int(rows),
            int(i), double(a), double(b));
    }
  }
}

}  // namespace

void products(uint64_t seed) {
  Numbers n(seed + 1);
  for (int64_t rows : {1, 7, 8, 9, 16, 17, 33}) {
    product(n, 1, 1, rows);
    product(n, 16, 64, rows);
    product(n, 50, 300, rows);
    product(n, 33, 1000, rows);
  }
}

void library(uint64_t seed) {
  CHECK(cuda::ltVersion() > 0, "there is no cuBLASLt");
  Numbers n(seed + 6);
  Memory<char> workspace(cuda::ltWorkspaceBytes());
  cuda::Lt lt;
  CHECK(lt.open(workspace.data(), nullptr) == TR_OK, "cuBLASLt does not open");
  for (int64_t rows : {17, 32, 50}) libraryProduct(n, lt, 50, 300, rows);
}

}  // namespace check
