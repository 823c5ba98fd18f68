#include "workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <new>

#include "../native/clock.h"

namespace cpu {

using native::nowNs;

namespace {

constexpr int spinsAClockRead = 32;

inline void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, nullptr,
                 nullptr, 0);
}

cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

// Keeps the calling thread on one processor for as long as it lives. The thread belongs to somebody else, so
// that its own set is put back.
class CallerPin {
 public:
  explicit CallerPin(int processor) {
    if (processor < 0 || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t set = only(processor);
    pinned_ = sched_setaffinity(0, sizeof set, &set) == 0;
  }
  ~CallerPin() {
    if (pinned_) sched_setaffinity(0, sizeof before_, &before_);
  }
  CallerPin(const CallerPin&) = delete;
  CallerPin& operator=(const CallerPin&) = delete;

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

bool mayUse(int threads, const int32_t* processors) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  for (int i = 0; i < threads; i++) {
    if (processors[i] < 0 || processors[i] >= CPU_SETSIZE) return false;
    if (!CPU_ISSET(processors[i], &allowed)) return false;
  }
  return true;
}

}  // namespace

void Gate::open() {
  turn_.fetch_add(1, std::memory_order_seq_cst);
  // Either this sees the sleeper, or the sleeper's kernel sees the new turn and does not sleep.
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(&turn_, FUTEX_WAKE, INT_MAX);
}

void Gate::wait(uint32_t seen) {
  int64_t end = 0;
  for (;;) {
    for (int i = 0; i < spinsAClockRead; i++) {
      if (turn() != seen) return;
      pauseBriefly();
    }
    int64_t now = nowNs();
    if (end == 0) end = now + spinMaxNs;
    if (now >= end) break;
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (turn_.load(std::memory_order_seq_cst) == seen) futex(&turn_, FUTEX_WAIT, seen);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

Workers::Workers(int threads, const int32_t* processors) : threads_(threads) {
  for (int i = 0; i < threads; i++) processors_[i] = processors ? processors[i] : -1;
}

int Workers::open(int threads, const int32_t* processors, Workers** out) {
  *out = nullptr;
  if (threads < 1 || threads > threadsMax) return EINVAL;
  if (processors && !mayUse(threads, processors)) return EINVAL;
  Workers* made = new (std::nothrow) Workers(threads, processors);
  if (!made) return ENOMEM;
  int failed = made->startHelpers();
  if (failed) {
    delete made;
    return failed;
  }
  *out = made;
  return 0;
}

int Workers::startHelpers() {
  // Signals are the business of the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  for (int w = 1; w < threads_ && !failed; w++) {
    helpers_[w] = {pthread_t(), this, w};
    pthread_attr_t attributes;
    failed = pthread_attr_init(&attributes);
    if (failed) break;
    if (processors_[w] >= 0) {
      cpu_set_t set = only(processors_[w]);
      failed = pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (!failed) failed = pthread_create(&helpers_[w].thread, &attributes, helperMain, &helpers_[w]);
    pthread_attr_destroy(&attributes);
    if (!failed) started_++;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failed;
}

Workers::~Workers() {
  stopping_ = true;
  start_.open();
  for (int w = 1; w < started_; w++) pthread_join(helpers_[w].thread, nullptr);
}

void* Workers::helperMain(void* argument) {
  Helper* helper = static_cast<Helper*>(argument);
  helper->owner->serve(helper->worker);
  return nullptr;
}

void Workers::serve(int worker) {
  // Turns begin at 0 and move only when there is work, so that work given before this thread ran is seen too.
  for (uint32_t seen = 0;; seen++) {
    start_.wait(seen);
    if (stopping_) return;
    body_(argument_, worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.open();
  }
}

bool Workers::run(Body body, void* argument) {
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  CallerPin pin(processors_[0]);
  for (int w = 0; w < threads_; w++) taken(phase_.turn(), w).blocks.store(0, std::memory_order_relaxed);
  if (threads_ == 1) {
    body(argument, 0);
  } else {
    body_ = body;
    argument_ = argument;
    uint32_t before = done_.turn();
    running_.store(threads_ - 1, std::memory_order_relaxed);
    start_.open();
    body(argument, 0);
    done_.wait(before);
  }
  busy_.store(false, std::memory_order_release);
  return true;
}

void Workers::barrier(int worker) {
  uint32_t seen = phase_.turn();
  taken(threads_ == 1 ? seen : seen + 1, worker).blocks.store(0, std::memory_order_relaxed);
  if (threads_ == 1) return;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.open();
    return;
  }
  phase_.wait(seen);
}

Range Workers::take(int64_t count, int64_t grain, int worker) {
  constexpr int half = 32;
  for (int i = 0; i < threads_; i++) {
    const int owner = (worker + i) % threads_;
    const Range share = shareOf(count, owner, threads_);
    std::atomic<uint64_t>& blocks = taken(phase_.turn(), owner).blocks;
    uint64_t before = blocks.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t front = int64_t(before & UINT32_MAX), back = int64_t(before >> half);
      const int64_t left = share.end - share.begin - front - back, some = left < grain ? left : grain;
      if (some <= 0) break;
      const uint64_t after = before + (owner == worker ? uint64_t(some) : uint64_t(some) << half);
      if (!blocks.compare_exchange_weak(before, after, std::memory_order_relaxed)) continue;
      const int64_t begin = owner == worker ? share.begin + front : share.end - back - some;
      return {begin, begin + some};
    }
  }
  return {0, 0};
}

}  // namespace cpu
