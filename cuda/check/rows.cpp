#include "../kernels/random.h"
#include "../kernels/rows.h"

#include "check.h"

namespace check {

namespace {

void embeds(Numbers& n) {
  const int64_t vocab = 7, hidden = 37, stride = 64, rows = 3, xStride = 48, pairs = 5;
  const std::vector<uint16_t> table = n.halves(vocab * stride);
  const std::vector<int32_t> tokens = {6, 0, 6}, positions = {0, 1, 100003};
  std::vector<double> frequencies;
  for (int i = 0; i < pairs; i++) frequencies.push_back(pow(10000, -double(i) / double(pairs)));
  Memory<int32_t> t(tokens), p(positions);
  Memory<uint16_t> e(table);
  Memory<double> f(frequencies);
  Memory<float> x(rows * xStride), cosines(rows * pairs), sines(rows * pairs);
  CHECK_CUDA(cuda::embed({t.data(), p.data(), e.data(), stride, hidden, x.data(), xStride, f.data(), pairs,
                          1.25, cosines.data(), sines.data()},
                         rows, stream()));
  const std::vector<float> got = x.read(), cosine = cosines.read(), sine = sines.read();
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t i = 0; i < hidden; i++) {
      const float want = native::widen(table[size_t(tokens[size_t(m)] * stride + i)]);
      CHECK(got[size_t(m * xStride + i)] == want, "x[%d][%d]", int(m), int(i));
    }
    for (int64_t i = 0; i < pairs; i++) {
      const double angle = positions[size_t(m)] * frequencies[size_t(i)];
      const size_t at = size_t(m * pairs + i);
      CHECK(fabs(cosine[at] - 1.25 * cos(angle)) < 1e-6 && fabs(sine[at] - 1.25 * sin(angle)) < 1e-6,
            "row %d, pair %d: %g and %g", int(m), int(i), double(cosine[at]), double(sine[at]));
    }
  }
}

void norms(Numbers& n, int64_t width, bool delta, bool bias, bool gathered) {
  const int64_t rows = 3, stride = (width + 15) / 16 * 16, outStride = (width + 63) / 64 * 64;
  const std::vector<float> from = n.floats(5 * stride, 3), change = n.floats(rows * stride);
  const std::vector<float> biases = n.floats(width), weight = n.floats(width);
  const std::vector<int32_t> source = {4, 0, 2};
  Memory<float> x(from), d(change), b(biases), w(weight), to(rows * stride);
  Memory<int32_t> s(source);
  Memory<uint16_t> out(rows * outStride);
  float* target = gathered ? to.data() : x.data();
  CHECK_CUDA(cuda::norm({x.data(), target, gathered ? s.data() : nullptr, delta ? d.data() : nullptr,
                         bias ? b.data() : nullptr, stride, w.data(), 1e-6f, width, out.data(), outStride},
                        rows, stream()));
  const std::vector<uint16_t> got = out.read();
  const std::vector<float> sum = gathered ? to.read() : x.read();
  std::vector<double> wantTo(static_cast<size_t>(width)), want(wantTo);
  for (int64_t m = 0; m < rows; m++) {
    const int64_t at = (gathered ? source[size_t(m)] : m) * stride;
    cuda::normReference(&from[size_t(at)], delta ? &change[size_t(m * stride)] : nullptr,
                        bias ? biases.data() : nullptr, weight.data(), 1e-6, width, wantTo.data(),
                        want.data());
    for (int64_t i = 0; i < outStride; i++) {
      const double value = double(native::widen(got[size_t(m * outStride + i)]));
      if (i >= width) {
        CHECK(value == 0, "out[%d][%d] = %g beyond the row", int(m), int(i), value);
        continue;
      }
      const double exact = want[size_t(i)];
      CHECK(fabs(value - exact) <= cuda::roundedTolerance * fabs(exact) + 1e-30, "%g, want %g", value, exact);
      CHECK(fabs(double(sum[size_t(m * stride + i)]) - wantTo[size_t(i)]) < 1e-5, "sum %d", int(i));
    }
  }
}

void swiglus(Numbers& n, int64_t width, bool bias) {
  const int64_t rows = 3, stride = 2 * width + 3, outStride = (width + 63) / 64 * 64;
  const std::vector<float> gates = n.floats(rows * stride, 3), biases = n.floats(2 * width);
  Memory<float> g(gates), b(biases);
  Memory<uint16_t> out(rows * outStride);
  CHECK_CUDA(cuda::swiglu({g.data(), stride, bias ? b.data() : nullptr, width, out.data(), outStride}, rows,
                          stream()));
  const std::vector<uint16_t> got = out.read();
  std::vector<double> want(static_cast<size_t>(width));
  for (int64_t m = 0; m < rows; m++) {
    std::vector<float> row(gates.begin() + m * stride, gates.begin() + m * stride + 2 * width);
    for (int64_t i = 0; bias && i < 2 * width; i++) row[size_t(i)] += biases[size_t(i)];
    cuda::swigluReference(row.data(), row.data() + width, width, want.data());
    for (int64_t i = 0; i < outStride; i++) {
      const double value = double(native::widen(got[size_t(m * outStride + i)])),
                   exact = i < width ? want[size_t(i)] : 0;
      CHECK(fabs(value - exact) <= cuda::roundedTolerance * fabs(exact) + 1e-30, "%g, want %g", value, exact);
    }
  }
}

// Random weights go where weights that are put go: rows and columns in runs that lie apart, nothing else.
void fills(Numbers& n) {
  const int64_t rows = 6, columns = 10, stride = 32, height = 20;
  const cuda::Drawn drawn = {n.bits(), 0.25, 1e-6};
  Memory<uint16_t> matrix(height * stride);
  Memory<float> vector(height);
  CHECK_CUDA(
      cuda::fillRandom(drawn, {rows, columns, matrix.data(), stride, nullptr, 1, 2, 5, 4, 8}, stream()));
  CHECK_CUDA(cuda::fillRandom(drawn, {rows, 1, nullptr, 0, vector.data(), 3, 6, 6, 1, 1}, stream()));
  std::vector<uint16_t> want(size_t(height * stride), 0xffff);
  for (int64_t i = 0; i < rows * columns; i++) {
    const int64_t row = i / columns, k = i % columns;
    want[size_t((1 + row / 2 * 5 + row % 2) * stride + k / 4 * 8 + k % 4)] = cuda::drawnReference(drawn, i);
  }
  CHECK(matrix.read() == want, "random matrix");
  const std::vector<float> got = vector.read();
  for (int64_t i = 0; i < height; i++) {
    const bool filled = i >= 3 && i < 3 + rows;
    const float number = got[size_t(i)];
    CHECK(filled ? number == native::widen(cuda::drawnReference(drawn, i - 3)) : isnan(number),
          "random vector [%d] = %g", int(i), double(number));
  }
}

}  // namespace

void rows(uint64_t seed) {
  Numbers n(seed);
  embeds(n);
  fills(n);
  for (int64_t width : {1, 30, 64, 100, 1024}) {
    for (bool gathered : {false, true}) {
      norms(n, width, false, false, gathered);
      norms(n, width, true, false, gathered);
      norms(n, width, true, true, gathered);
    }
    for (bool bias : {false, true}) swiglus(n, width, bias);
  }
}

}  // namespace check
