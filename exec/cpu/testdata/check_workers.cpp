// Runs the workers for sanitizers to watch.
#include "check_workers.h"

#include <time.h>

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

int main() {
  checkShares();
  checkWorkers();
  puts("ok");
}
