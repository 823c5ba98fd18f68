#include "../kernels/logits.h"

#include <algorithm>

#include "check.h"

namespace check {

namespace {

struct Row {
  std::vector<float> z;
  cuda::Draw draw;
  std::vector<tr_bias> biases;
};

bool near(double got, double want, double size) {
  return (isnan(got) && isnan(want)) || fabs(got - want) <= cuda::statisticsTolerance * fmax(1, size);
}

void checkTop(const Row& row, const tr_candidate* top, int32_t count, double logSumExp, int32_t wanted) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < row.z.size(); i++) {
    if (row.z[i] > -INFINITY) order.push_back(int32_t(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return row.z[size_t(a)] > row.z[size_t(b)]; });
  CHECK(count == std::min(int32_t(order.size()), wanted), "%d entries of %d", count, wanted);
  for (int32_t i = 0; i < count; i++) {
    const double want = double(row.z[size_t(order[size_t(i)])]) - logSumExp;
    CHECK(top[i].token == order[size_t(i)] && near(double(top[i].log_probability), want, 8 * fabs(want)),
          "place %d: token %d with %g, want %d with %g", i, top[i].token, double(top[i].log_probability),
          order[size_t(i)], want);
  }
}

// All rows in one launch.
void checkRows(std::vector<Row> rows, int64_t samplable, int threads, int64_t routerTop) {
  const int64_t vocab = int64_t(rows[0].z.size()), stride = vocab + 5, count = int64_t(rows.size());
  const int64_t topStride = cuda::topMax;
  std::vector<float> z(size_t(count * stride), NAN);
  std::vector<cuda::Draw> draws;
  std::vector<tr_bias> biases;
  for (int64_t m = 0; m < count; m++) {
    Row& row = rows[size_t(m)];
    std::copy(row.z.begin(), row.z.end(), z.begin() + m * stride);
    row.draw.firstBias = int32_t(biases.size());
    row.draw.biases = int32_t(row.biases.size());
    biases.insert(biases.end(), row.biases.begin(), row.biases.end());
    draws.push_back(row.draw);
  }
  Memory<float> logits(z), saved(int64_t(biases.size()) + 1), router(count * std::max<int64_t>(routerTop, 1));
  Memory<cuda::Draw> d(draws);
  biases.push_back({0, 0});
  Memory<tr_bias> b(biases);
  Memory<cuda::ChunkStatistics> chunks(count * cuda::chunksOf(vocab));
  Memory<tr_result> results(count);
  Memory<tr_candidate> top(count * topStride);
  CHECK_CUDA(cuda::describe({logits.data(), stride, vocab, samplable, d.data(), b.data(), saved.data(),
                             chunks.data(), results.data(), top.data(), topStride, router.data(), routerTop},
                            count, threads, stream()));
  const std::vector<tr_result> got = results.read();
  const std::vector<tr_candidate> lists = top.read();
  CHECK(memcmp(logits.read().data(), z.data(), z.size() * 4) == 0, "the logits are not as they were");
  for (int64_t m = 0; m < count; m++) {
    const Row& row = rows[size_t(m)];
    const tr_result& r = got[size_t(m)];
    const tr_result want = cuda::resultReference(row.z.data(), vocab, samplable, row.draw, biases.data());
    CHECK(r.token == want.token && r.finite == want.finite, "row %d: token %d, want %d", int(m), r.token,
          want.token);
    CHECK(isnan(r.score), "row %d has a score", int(m));
    CHECK(near(double(r.log_probability), double(want.log_probability), 64) &&
              near(double(r.top_probability), double(want.top_probability), 1) &&
              near(double(r.margin), double(want.margin), 1) &&
              near(double(r.entropy), double(want.entropy), 1) &&
              near(double(r.log_sum_exp), double(want.log_sum_exp), fabs(double(want.log_sum_exp))),
          "row %d: entropy %g, want %g; log-sum-exp %g, want %g", int(m), double(r.entropy),
          double(want.entropy), double(r.log_sum_exp), double(want.log_sum_exp));
    if (r.finite) checkTop(row, &lists[size_t(m * topStride)], r.top, double(r.log_sum_exp), row.draw.top);
  }
}

Row rowOf(Numbers& n, int64_t vocab, float temperature, int32_t topK, float topP, float minP, int32_t top) {
  return {n.floats(vocab, 3), {temperature, topP, minP, topK, top, 0, 0, 0, n.bits()}, {}};
}

void special(Numbers& n, int64_t vocab) {
  std::vector<Row> rows;
  auto add = [&](int kind) {
    Row row = rowOf(n, vocab, kind % 2 ? 1.0f : 0.0f, 0, 1, 0, 3);
    const size_t at = size_t(n.below(vocab));
    switch (kind / 2) {
      case 0:
        row.z[at] = NAN;
        break;
      case 1:
        row.z[at] = INFINITY;
        break;
      case 2:
        row.z[at] = -INFINITY;
        break;
      case 3:
        std::fill(row.z.begin(), row.z.end(), -INFINITY);
        break;
      case 4:
        std::fill(row.z.begin(), row.z.end(), 0.0f);
        break;
      default:
        row.biases = {{int32_t(at), 1e38f}, {0, -5}, {int32_t(at), 3.3e38f}};
        break;
    }
    rows.push_back(row);
  };
  for (int kind = 0; kind < 12; kind++) add(kind);
  checkRows(rows, vocab, 64, 0);
}

}  // namespace

void logits(uint64_t seed) {
  Numbers n(seed + 3);
  for (int64_t vocab : {1, 2, 100, 1024, 5000}) {
    special(n, vocab);
    std::vector<Row> rows;
    for (float temperature : {0.0f, 0.7f, 5.0f}) {
      for (int32_t topK : {0, 1, 7, 1500}) {
        rows.push_back(rowOf(n, vocab, temperature, topK, 1, 0, 0));
        rows.push_back(rowOf(n, vocab, temperature, topK, 0.9f, 0, 5));
        rows.push_back(rowOf(n, vocab, temperature, topK, 0.999f, 0.001f, 200));
        rows.push_back(rowOf(n, vocab, temperature, topK, 1, 0.3f, 2));
      }
    }
    checkRows(rows, vocab, 128, 10);
    checkRows(rows, (vocab + 1) / 2, 32, 0);
  }
}

}  // namespace check
