// Threads that share one piece of work at a time.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include <atomic>

namespace cpu {

// Longest time that a waiting thread spins before it sleeps, in nanoseconds.
constexpr int64_t spinMaxNs = 50000;

// A gate that threads wait at until its turn moves on. Opening it costs a system call only when somebody
// sleeps.
class Gate {
 public:
  uint32_t turn() const { return turn_.load(std::memory_order_acquire); }
  void open();                // lets everybody through who saw the current turn
  void wait(uint32_t seen);   // returns once turn() differs from seen; spins at most spinMaxNs, then sleeps

 private:
  alignas(64) std::atomic<uint32_t> turn_{0};
  std::atomic<int32_t> sleepers_{0};
};

// A half-open range of blocks.
struct Range {
  int64_t begin, end;
};

// The fixed part of count blocks that worker gets of workers. Parts are contiguous, differ by at most one
// block and depend on nothing else.
inline Range shareOf(int64_t count, int worker, int workers) {
  return {count * worker / workers, count * (worker + 1) / workers};
}

// Workers runs a function on a fixed number of threads. The thread that calls run is worker 0, whichever it
// is; helpers live from open to the destructor, block all signals, and are pinned if processors are given.
class Workers {
 public:
  using Body = void (*)(void* argument, int worker);

  static constexpr int threadsMax = 256;

  // Starts threads - 1 helpers (threads 1 to threadsMax). processors is null, or has one processor number a
  // worker: helpers stay there, and the caller is there for the time of a run only. Returns 0, or an errno
  // value: EINVAL for a bad number, a processor that this process may not use, or no memory or thread.
  static int open(int threads, const int32_t* processors, Workers** out);

  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const { return threads_; }

  // Calls body(argument, w) for every worker w at the same time and returns when all have returned. Returns
  // false, and calls nothing, if a run is going on.
  bool run(Body body, void* argument);

  // The same for a function object, body(int worker).
  template <class F>
  bool run(F& body) {
    return run([](void* argument, int worker) { (*static_cast<F*>(argument))(worker); }, &body);
  }

  // To be called by all workers inside a run: returns once all have come. What they wrote before is visible
  // after.
  void barrier(int worker);

  // What the calling worker takes next of count blocks: at most grain, in one piece, and nothing once all
  // are taken. That is its own share from front to back, and then what others have left of theirs, from the
  // back: a processor that is slow, for itself or for a while, holds nobody up. Between two barriers of a run
  // every worker calls it with the same count, which is less than 2^31, and the same grain.
  Range take(int64_t count, int64_t grain, int worker);

 private:
  struct Helper {
    pthread_t thread;
    Workers* owner;
    int worker;
  };

  // Blocks of a worker's share that are taken: from the front in the lower half, from the back in the
  // upper.
  struct alignas(64) Taken {
    std::atomic<uint64_t> blocks{0};
  };

  // Shares that are taken from between two barriers, in turn. Those of a turn are made anew in the one
  // before.
  static constexpr uint32_t turns = 4;

  Workers(int threads, const int32_t* processors);
  int startHelpers();
  Taken& taken(uint32_t turn, int worker) { return taken_[turn % turns][worker]; }
  static void* helperMain(void* argument);
  void serve(int worker);

  int threads_;
  int started_ = 1;
  int32_t processors_[threadsMax];
  Helper helpers_[threadsMax];
  Body body_ = nullptr;
  void* argument_ = nullptr;
  std::atomic<bool> busy_{false};
  bool stopping_ = false;
  Gate start_, done_, phase_;
  alignas(64) std::atomic<int32_t> running_{0};
  alignas(64) std::atomic<int32_t> arrived_{0};
  Taken taken_[turns][threadsMax];
};

}  // namespace cpu
