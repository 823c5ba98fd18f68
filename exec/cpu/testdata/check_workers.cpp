// Runs the workers for sanitizers to watch.
#include "check_workers.h"

#include <sched.h>
#include <time.h>

#include <atomic>

// Everybody writes, everybody waits, everybody reads what the others wrote.
static void checkBarrier(Workers& workers, int rounds) {
  std::vector<int> written(size_t(workers.count()), -1);
  auto body = [&](int worker) {
    for (int round = 0; round < rounds; round++) {
      written[size_t(worker)] = round;
      workers.barrier(worker);
      for (int value : written) CHECK(value == round);
      workers.barrier(worker);
    }
  };
  CHECK(workers.run(body));
}

// Whatever the pace of workers, everything is taken once, in pieces that are no larger than asked for.
static void checkTake(Workers& workers, int64_t count, int64_t grain) {
  constexpr int rounds = 9;
  std::vector<std::atomic<int>> taken(size_t(rounds * count));
  auto body = [&](int worker) {
    for (int round = 0; round < rounds; round++) {
      for (Range r; (r = workers.take(count, grain, worker)).begin < r.end;) {
        CHECK(r.end - r.begin <= grain && r.begin >= 0 && r.end <= count);
        for (int64_t i = r.begin; i < r.end; i++) taken[size_t(round * count + i)]++;
        if (worker == round % 4) sched_yield();
      }
      workers.barrier(worker);
    }
  };
  for (int run = 1; run <= 2; run++) {
    CHECK(workers.run(body));
    for (std::atomic<int>& times : taken) CHECK(times == run);
  }
  // A run that ends without a barrier leaves nothing behind.
  std::atomic<int64_t> sum{0};
  auto once = [&](int worker) {
    for (Range r; (r = workers.take(count, grain, worker)).begin < r.end;) sum += r.end - r.begin;
  };
  for (int run = 1; run <= 3; run++) {
    CHECK(workers.run(once));
    CHECK(sum == run * count);
  }
}

// One worker alone takes its own share from the front, and then the others' from the back.
static void checkTakeOrder() {
  auto workers = openWorkers(2);
  std::vector<int64_t> begins;
  auto body = [&](int worker) {
    if (worker == 1) return;
    for (Range r; (r = workers->take(7, 2, worker)).begin < r.end;) begins.push_back(r.begin);
  };
  CHECK(workers->run(body));
  // Shares are 0 to 2 and 3 to 6.
  CHECK(begins == std::vector<int64_t>({0, 2, 5, 3}));
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
    for (int64_t count : {0, 1, 3, 37}) {
      for (int64_t grain : {1, 2, 100}) checkTake(*workers, count, grain);
    }
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
  checkTakeOrder();
  checkWorkers();
  puts("ok");
}
