#include "../kernels/router.h"

#include "check.h"

namespace check {

namespace {

constexpr int64_t rowCount = 3;

std::vector<tr_result> resultsOf() {
  std::vector<tr_result> r(rowCount, tr_result{});
  for (int32_t i = 0; i < rowCount; i++) r[size_t(i)] = {i, i != 1, 0, 0, 0, 0, 0, 0, NAN};
  return r;
}

double sigmoid(double x) { return 1 / (1 + exp(-x)); }

void checkScores(const std::vector<tr_result>& got, const std::vector<double>& want) {
  for (size_t m = 0; m < got.size(); m++) {
    if (m == 1) {
      CHECK(isnan(got[m].score), "a row that is not sound has score %g", got[m].score);
      continue;
    }
    CHECK(fabs(got[m].score - want[m]) <= cuda::scoreTolerance, "row %d: %g, want %g", int(m), got[m].score,
          want[m]);
  }
}

void inputs(Numbers& n) {
  const int64_t width = 37, stride = 64, joinedStride = 128, count = 10;
  const std::vector<uint16_t> hidden = n.halves(rowCount * stride), embedding = n.halves(rowCount * stride);
  const std::vector<float> top = n.floats(rowCount * count, 9);
  Memory<uint16_t> h(hidden), e(embedding), joined(rowCount * joinedStride), logits(rowCount * 64);
  Memory<tr_result> results(resultsOf());
  Memory<float> t(top);
  CHECK_CUDA(cuda::routerInputs({h.data(), stride, width, e.data(), stride, results.data(), t.data(), count,
                                 joined.data(), joinedStride, logits.data(), 64},
                                rowCount, stream()));
  const std::vector<uint16_t> got = joined.read(), narrow = logits.read();
  for (int64_t m = 0; m < rowCount; m++) {
    for (int64_t i = 0; i < joinedStride; i++) {
      if (i >= 2 * width && i < 3 * width) continue;
      const uint16_t want = i < width       ? hidden[size_t(m * stride + i)]
                            : i < 2 * width ? embedding[size_t(m * stride + i - width)]
                                            : uint16_t(0);
      CHECK(got[size_t(m * joinedStride + i)] == want, "joined[%d][%d]", int(m), int(i));
    }
    for (int64_t i = 0; i < 64; i++) {
      const uint16_t want = i < count ? native::narrow(top[size_t(m * count + i)]) : uint16_t(0);
      CHECK(narrow[size_t(m * 64 + i)] == want, "logits[%d][%d]", int(m), int(i));
    }
  }
}

void rounds(Numbers& n, bool gelu) {
  const int64_t width = 300, stride = 304, outStride = 320;
  const std::vector<float> sums = n.floats(rowCount * stride, 3), bias = n.floats(width);
  Memory<float> s(sums), b(bias);
  Memory<uint16_t> out(rowCount * outStride);
  CHECK_CUDA(cuda::routerRound({s.data(), stride, b.data(), width, gelu, out.data(), outStride, outStride},
                               rowCount, stream()));
  const std::vector<uint16_t> got = out.read();
  for (int64_t m = 0; m < rowCount; m++) {
    for (int64_t i = 0; i < outStride; i++) {
      double want = i < width ? double(sums[size_t(m * stride + i)]) + double(bias[size_t(i)]) : 0;
      const double size = fabs(want);
      if (gelu) want = cuda::geluReference(want);
      const double value = double(native::widen(got[size_t(m * outStride + i)]));
      CHECK(fabs(value - want) <= 0x1p-8 * fabs(want) + cuda::geluTolerance * size, "%g, want %g", value,
            want);
    }
  }
}

void norms(Numbers& n, bool first, bool last) {
  const int64_t width = 300, stride = 304, outStride = 320;
  const std::vector<float> sums = n.floats(rowCount * stride), bias = n.floats(width),
                           before = n.floats(rowCount * stride);
  const std::vector<float> weight = n.floats(width), normBias = n.floats(width), out = n.floats(width, 0.1f);
  const std::vector<float> scoreBias = {0.25f};
  Memory<float> s(sums), b(bias), r(before), w(weight), nb(normBias), ow(out), ob(scoreBias);
  Memory<uint16_t> o(rowCount * outStride);
  Memory<tr_result> results(resultsOf());
  CHECK_CUDA(
      cuda::routerNorm({s.data(), stride, b.data(), first, r.data(), stride, width, w.data(), nb.data(),
                        last ? nullptr : o.data(), outStride, ow.data(), ob.data(), results.data()},
                       rowCount, stream()));
  const std::vector<uint16_t> got = o.read();
  const std::vector<float> residual = r.read();
  std::vector<double> x(static_cast<size_t>(width)), want(x), scores;
  for (int64_t m = 0; m < rowCount; m++) {
    for (size_t i = 0; i < x.size(); i++) {
      const size_t at = size_t(m * stride) + i;
      x[i] = double(sums[at]) + double(bias[i]) + (first ? 0 : double(before[at]));
      CHECK(fabs(double(residual[at]) - x[i]) < 1e-5, "residual[%d][%d]", int(m), int(i));
    }
    cuda::layerNormReference(x.data(), weight.data(), normBias.data(), width, want.data());
    double product = double(scoreBias[0]);
    for (size_t i = 0; i < x.size(); i++) {
      product += want[i] * double(out[i]);
      const double value = double(native::widen(got[size_t(m * outStride) + i]));
      CHECK(last || fabs(value - want[i]) <= 0x1.1p-8 * fabs(want[i]) + 2e-6, "%g, want %g", value, want[i]);
    }
    scores.push_back(sigmoid(product));
  }
  if (last) checkScores(results.read(), scores);
}

void scores(Numbers& n, bool citer) {
  const int64_t width = 130, stride = 192;
  const std::vector<uint16_t> hidden = n.halves(rowCount * stride);
  const std::vector<float> sums = n.floats(rowCount * stride), bias = n.floats(width),
                           weight = n.floats(width, 0.1f);
  const std::vector<float> scoreBias = {-0.5f};
  Memory<uint16_t> h(hidden);
  Memory<float> s(sums), b(bias), w(weight), ob(scoreBias);
  Memory<tr_result> results(resultsOf());
  CHECK_CUDA(cuda::routerScore({h.data(), stride, citer ? s.data() : nullptr, stride, b.data(), width,
                                w.data(), citer ? ob.data() : nullptr, results.data()},
                               rowCount, stream()));
  std::vector<double> want;
  for (int64_t m = 0; m < rowCount; m++) {
    double sum = citer ? double(scoreBias[0]) : 0;
    for (int64_t i = 0; i < width; i++) {
      const size_t at = size_t(m * stride + i);
      const double x =
          citer ? fmax(double(sums[at]) + double(bias[size_t(i)]), 0) : double(native::widen(hidden[at]));
      sum += x * double(weight[size_t(i)]);
    }
    want.push_back(sigmoid(sum));
  }
  checkScores(results.read(), want);
}

}  // namespace

void router(uint64_t seed) {
  Numbers n(seed + 4);
  inputs(n);
  for (bool gelu : {false, true}) rounds(n, gelu);
  norms(n, true, false);
  norms(n, false, false);
  norms(n, false, true);
  for (bool citer : {false, true}) scores(n, citer);
}

}  // namespace check
