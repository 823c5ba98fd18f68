// Runs the kernels with buffers of exactly the size that they ask for, for sanitizers to watch.
#include "check.h"

#include <math.h>
#include <time.h>

#include <memory>

#include "../bf16.h"
#include "../gemm.h"
#include "../paths.h"
#include "../stream.h"
#include "../workers.h"

using namespace cpu;

static std::unique_ptr<Workers> openWorkers(int threads) {
  Workers* made;
  CHECK(Workers::open(threads, nullptr, &made) == 0);
  return std::unique_ptr<Workers>(made);
}

// Everybody writes, everybody waits, everybody reads what the others wrote.
static void checkBarrier(Workers& workers, int rounds) {
  std::vector<int> written(size_t(workers.count()), -1);
  auto body = [&](int worker) {
    for (int round = 0; round < rounds; round++) {
      written[size_t(worker)] = round;
      workers.barrier();
      for (int value : written) CHECK(value == round);
      workers.barrier();
    }
  };
  CHECK(workers.run(body));
}

static void checkWorkers() {
  for (int threads = 1; threads <= 4; threads++) {
    auto workers = openWorkers(threads);
    CHECK(workers->count() == threads);
    for (int run = 0; run < 100; run++) {
      std::vector<int> calls(size_t(threads), 0);
      auto body = [&](int worker) { calls[size_t(worker)]++; };
      CHECK(workers->run(body));
      for (int count : calls) CHECK(count == 1);
    }
    checkBarrier(*workers, 50);
    timespec longerThanSpinning = {0, 3 * spinMaxNs};
    nanosleep(&longerThanSpinning, nullptr);
    checkBarrier(*workers, 3);
    bool inside = true;
    auto again = [&](int worker) {
      if (worker == 0) inside = workers->run([](void*, int) {}, nullptr);
    };
    CHECK(workers->run(again));
    CHECK(!inside);
  }
  for (int threads = 1; threads <= 3; threads++) openWorkers(threads);  // made, never used, ended
  Workers* none;
  CHECK(Workers::open(0, nullptr, &none) != 0 && !none);
}

static void checkShares() {
  for (int64_t count : {0, 1, 2, 7, 64, 2374}) {
    for (int workers = 1; workers <= 5; workers++) {
      int64_t at = 0;
      for (int w = 0; w < workers; w++) {
        Range share = shareOf(count, w, workers);
        CHECK(share.begin == at && share.end >= at && share.end - at <= count / workers + 1);
        at = share.end;
      }
      CHECK(at == count);
    }
  }
}

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

int main() {
  checkShares();
  checkWorkers();
  for (int threads = 1; threads <= 2; threads++) {
    auto workers = openWorkers(threads);
    for (int32_t p = 1; p <= pathMax; p++) {
      if (!available(Path(p))) continue;
      for (int64_t rows : {1, 2, 5, 16, 17, 32, 33, 70}) {
        checkGemm(*workers, Path(p), 1, 1, rows);
        checkGemm(*workers, Path(p), 65, 33, rows);
        checkGemm(*workers, Path(p), 256, 100, rows);
      }
    }
  }
  puts("ok");
}
