// Runs the kernels with buffers of exactly the size that they ask for, for sanitizers to watch.
#include "check_int8.h"
#include "check_step.h"
#include "check_workers.h"

#include <math.h>

#include <memory>

#include "../bf16.h"
#include "../gemm.h"
#include "../lane_kernels.h"
#include "../paths.h"
#include "../stream.h"
#include "../workers.h"

using namespace cpu;

static void checkGemm(Workers& workers, Path path, int64_t columns, int64_t depth, int64_t rows) {
  Numbers numbers(uint32_t(columns * 31 + depth * 7 + rows));
  std::vector<uint16_t> source(size_t(columns * depth));
  for (uint16_t& b : source) b = narrow(numbers.next());
  std::unique_ptr<PackedWeights> weights(PackedWeights::make(columns, depth, source.data()));
  CHECK(weights);
  const Packed& w = weights->view();
  std::vector<uint16_t> x(size_t(rows * w.paddedDepth()), 0);
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t k = 0; k < depth; k++) x[size_t(m * w.paddedDepth() + k)] = narrow(numbers.next());
  }
  std::vector<float> y(size_t(rows * w.paddedColumns()));
  std::vector<double> want(size_t(rows * columns)), magnitude(want.size());
  Gemm g{rows, x.data(), w.paddedDepth(), w, y.data(), w.paddedColumns()};
  CHECK(gemm(workers, path, g));
  gemmReference(g, want.data(), magnitude.data());
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t n = 0; n < columns; n++) {
      size_t at = size_t(m * columns + n);
      CHECK(fabs(double(y[size_t(m * w.paddedColumns() + n)]) - want[at]) <= gemmTolerance * magnitude[at]);
    }
  }
  uint64_t sum;
  CHECK(streamSum(workers, w.tiles, w.bytes(), &sum));
}

static void checkRows(const RowKernels& rows, int64_t width) {
  Numbers numbers(uint32_t(width) + 1);
  const int64_t padded = (width + 31) / 32 * 32;
  std::vector<float> x = numbers.take(size_t(width)), delta = numbers.take(size_t(width)), weight = delta;
  std::vector<double> exact(x.begin(), x.end()), want(x.size());
  std::vector<uint16_t> out(static_cast<size_t>(padded));
  rows.norm(x.data(), delta.data(), weight.data(), 1e-6f, width, out.data(), padded);
  normReference(exact.data(), delta.data(), weight.data(), 1e-6, width, want.data());
  auto near = [&] {
    for (size_t i = 0; i < want.size(); i++) {
      CHECK(fabs(double(widen(out[i])) - want[i]) <= roundedTolerance * fabs(want[i]) + 1e-30);
    }
  };
  near();
  rows.swiglu(x.data(), delta.data(), width, out.data(), padded);
  swigluReference(x.data(), delta.data(), width, want.data());
  near();
  rows.round(x.data(), width, out.data(), padded);
  for (size_t i = 0; i < x.size(); i++) CHECK(out[i] == narrow(x[i]));
  std::vector<float> before = x;
  rows.add(x.data(), delta.data(), width);
  for (size_t i = 0; i < x.size(); i++) CHECK(x[i] == before[i] + delta[i]);
  if (width % 2) return;
  std::vector<float> cosines(size_t(width / 2), 0.6f), sines(size_t(width / 2), 0.8f);
  before = x;
  rows.rotate(x.data(), weight.data(), 1e-6f, cosines.data(), sines.data(), width);
  rotateReference(before.data(), weight.data(), 1e-6, cosines.data(), sines.data(), width, want.data());
  for (size_t i = 0; i < x.size(); i++) CHECK(fabs(double(x[i]) - want[i]) <= 1e-5);
}

static void checkLogits(const LogitsKernels& kernels, int64_t vocabulary) {
  Numbers numbers(static_cast<uint32_t>(vocabulary));
  constexpr int64_t rows = 3;
  std::vector<float> z = numbers.take(size_t(rows * vocabulary));
  std::vector<ChunkStatistics> chunks(size_t(rows * chunksOf(vocabulary)));
  const int64_t each = chunksOf(vocabulary);
  for (int64_t i = 0; i < rows * each; i++) {
    chunkOf(kernels, z.data() + i / each * vocabulary, vocabulary, i % each, chunks.data() + i / each * each);
  }
  for (int64_t row = 0; row < rows; row++) {
    const float* at = z.data() + row * vocabulary;
    LogitsStatistics got = merge(chunks.data() + row * chunksOf(vocabulary), vocabulary);
    LogitsStatistics want = statisticsReference(at, vocabulary);
    CHECK(got.token == want.token && got.finite == 1 && got.maxLogit == want.maxLogit);
    CHECK(fabs(double(got.entropy) - double(want.entropy)) <= statisticsTolerance);
    std::vector<Candidate> scratch(static_cast<size_t>(vocabulary));
    CHECK(topLogits(kernels, at, vocabulary, 1, scratch.data()) == 1 && scratch[0].token == want.token);
    for (Sampling s : {Sampling{0, 0, 1, 0, 0}, Sampling{1, 0, 1, 0, ~0ull}, Sampling{1, 0, 0.9f, 0, ~0ull},
                       Sampling{0.7f, 5, 0.9f, 0.1f, ~0ull}, Sampling{2, 0, 1, 0.5f, 0}}) {
      int32_t token = sample(kernels, at, vocabulary, s, got.maxLogit, scratch.data());
      CHECK(token >= 0 && token < vocabulary);
    }
  }
}

static void checkAttention(Workers& workers, const AttentionKernels& kernels, int64_t heads, int64_t window) {
  Numbers numbers(uint32_t(heads + window));
  KVPages kv{nullptr, nullptr, 7, 2, 32, 16};
  std::vector<uint16_t> keys(size_t(kv.pages * kv.kvHeads * kv.headElements()), 0x7fc0), values = keys;
  kv.keys = keys.data();
  kv.values = values.data();
  const int32_t tables[2][3] = {{6, 0, 3}, {5, 1, 2}};
  const AttentionRequest requests[2] = {{0, 20, 41, tables[0]}, {20, 1, 48, tables[1]}};
  for (const AttentionRequest& r : requests) {
    for (int64_t i = 0; i < r.kvLength * kv.kvHeads; i++) {
      std::vector<uint16_t> key(size_t(kv.headDim)), value = key;
      for (uint16_t& b : key) b = narrow(numbers.next());
      for (uint16_t& b : value) b = narrow(numbers.next());
      fetchKV(kv, r.pageTable, i / kv.kvHeads, i % kv.kvHeads);
      storeKV(kv, r.pageTable, i / kv.kvHeads, i % kv.kvHeads, key.data(), value.data());
    }
  }
  const int64_t stride = heads * kv.headDim;
  std::vector<float> q = numbers.take(size_t(21 * stride)), out(q.size());
  for (float& f : q) f = widen(narrow(f));
  std::vector<double> want(q.size());
  const Attention a{kv, heads, window, 0.3f, q.data(), stride, out.data(), stride, requests, 2};
  auto body = [&](int worker) { attend(kernels, a, workers, worker); };
  CHECK(workers.run(body));
  attentionReference(a, want.data());
  for (size_t i = 0; i < out.size(); i++) CHECK(fabs(double(out[i]) - want[i]) <= kernels.tolerance);
}

static const char* const pathNames[pathMax] = {"plain", "avx2", "avx512", "avx512-bf16", "amx"};

int main() {
  for (int threads = 1; threads <= 2; threads++) {
    auto workers = openWorkers(threads);
    for (int32_t p = 1; p <= pathMax; p++) {
      if (!available(Path(p))) continue;
      for (int64_t rows : {1, 5, 17, 35}) {
        checkGemm(*workers, Path(p), 1, 1, rows);
        checkGemm(*workers, Path(p), 65, 33, rows);
        checkGemm(*workers, Path(p), 256, 100, rows);
      }
      checkInt8(*workers, Path(p));
      checkSteps(pathNames[p - 1], threads);
      const LaneKernels& lanes = laneKernels(Path(p));
      for (int64_t width : {1, 16, 30, 64, 77}) checkRows(lanes.rows, width);
      for (int64_t vocabulary : {1, 16, 100, 1024, 9001}) checkLogits(lanes.logits, vocabulary);
      for (int64_t heads : {2, 6}) {
        checkAttention(*workers, lanes.attention, heads, 0);
        checkAttention(*workers, lanes.attention, heads, 18);
      }
    }
  }
  puts("ok");
}
