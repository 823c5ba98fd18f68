// The blocks and threads of cuda_runtime.h.
#include <stdio.h>
#include <stdlib.h>

#include <memory>
#include <vector>

#include "emu.h"
#include "fiber.h"

namespace emu {

namespace {

constexpr int warpThreads = 32, threadsMax = 1024;

// A place where members wait for one another. generation counts how often all have come.
struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};

struct Thread {
  Fiber fiber;
  Place place;
  const Barrier* waiting;  // or null
  unsigned generation;     // of waiting, when the thread came
  bool done;
};

float widen(uint32_t half) {
  const uint32_t bits = half << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// The fragments of a product of tiles, by lane.
struct Tiles {
  uint32_t a[warpThreads][4], b[warpThreads][2];
  float d[warpThreads][4];

  // d = a * b.
  void multiply() {
    float left[16][16], right[16][8], product[16][8] = {};
    for (int lane = 0; lane < warpThreads; lane++) {
      const int group = lane / 4, pair = 2 * (lane % 4);
      for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 4; i++) {
          left[group + 8 * (i & 1)][pair + half + 8 * (i >> 1)] = widen(a[lane][i] >> 16 * half & 0xffff);
        }
        for (int i = 0; i < 2; i++) right[pair + half + 8 * i][group] = widen(b[lane][i] >> 16 * half & 0xffff);
      }
    }
    for (int row = 0; row < 16; row++) {
      for (int k = 0; k < 16; k++) {
        for (int column = 0; column < 8; column++) product[row][column] += left[row][k] * right[k][column];
      }
    }
    for (int lane = 0; lane < warpThreads; lane++) {
      for (int i = 0; i < 4; i++) d[lane][i] = product[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
    }
  }
};

// Two of everything: a warp may begin the next exchange before the last of its threads has read this one's.
struct Warp {
  Barrier barrier;
  int members;
  uint64_t given[2][warpThreads];
  Tiles tiles[2];
};

// One thread of the host, and the block that it runs.
struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps = std::vector<Warp>(threadsMax / warpThreads);
  Barrier barrier;
  Thread* running = nullptr;
  const std::function<void()>* kernel = nullptr;
  int count = 0;
  std::unique_ptr<char[]> shared;
  size_t sharedBytes = 0;
  uint64_t random = 0x9e3779b97f4a7c15u;

  uint64_t draw() {
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  }

  // Calls body(i) for 0 to n - 1 in a random order.
  template <class F>
  void shuffled(unsigned n, F body) {
    unsigned size = 1;
    while (size < n) size *= 2;
    const unsigned first = unsigned(draw()), step = unsigned(draw()) | 1;
    for (unsigned i = 0; i < size; i++) {
      const unsigned at = (first + i * step) & (size - 1);
      if (at < n) body(at);
    }
  }

  void run(dim3 grid, int threadCount, const std::function<void()>& body);
  void runBlock(dim3 grid, dim3 block);
  void wait(Barrier& barrier, int members);
};

__thread Machine* machine;  // that runs a grid on this thread

// Where a fiber begins. It never returns.
void begin() {
  fiberEntered();
  (*machine->kernel)();
  machine->running->done = true;
  leaveFiber(machine->running->fiber, true);
}

void Machine::wait(Barrier& at, int members) {
  Thread& self = *running;
  self.generation = at.generation;
  if (++at.arrived == members) {
    at.arrived = 0;
    at.generation++;
    return;
  }
  self.waiting = &at;
  leaveFiber(self.fiber, false);
}

void Machine::runBlock(dim3 grid, dim3 block) {
  barrier = Barrier();
  shared.reset();
  sharedBytes = 0;
  for (int i = 0; i < count; i++) {
    Thread& t = *threads[size_t(i)];
    t.place = {dim3(unsigned(i), 0, 0), block, dim3(unsigned(count)), grid, i % warpThreads};
    t.waiting = nullptr;
    t.done = false;
    t.fiber.start(begin);
    warps[size_t(i / warpThreads)].barrier = Barrier();
  }
  for (int live = count; live > 0;) {
    bool moved = false;
    shuffled(unsigned(count), [&](unsigned i) {
      Thread& t = *threads[i];
      if (t.done || (t.waiting && t.waiting->generation == t.generation)) return;
      moved = true;
      t.waiting = nullptr;
      running = &t;
      here = &t.place;
      enterFiber(t.fiber);
      live -= t.done;
    });
    if (moved) continue;
    fprintf(stderr, "emu: block (%u, %u, %u): %d of %d threads wait for ever: a barrier that not all reach\n",
            block.x, block.y, block.z, live, count);
    abort();
  }
}

void Machine::run(dim3 grid, int threadCount, const std::function<void()>& body) {
  kernel = &body;
  count = threadCount;
  while (int(threads.size()) < count) threads.emplace_back(new Thread());
  for (int i = 0; i < count; i += warpThreads) {
    warps[size_t(i / warpThreads)].members = count - i < warpThreads ? count - i : warpThreads;
  }
  shuffled(grid.x * grid.y * grid.z,
           [&](unsigned i) { runBlock(grid, dim3(i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y)); });
  shared.reset();
}

Warp& warp() { return machine->warps[machine->running->place.thread.x / warpThreads]; }

}  // namespace

__thread Place* here;
__thread int inside;

void runGrid(dim3 grid, int threads, const std::function<void()>& kernel) {
  thread_local Machine own;
  machine = &own;
  own.run(grid, threads, kernel);
}

void* sharedMemory(size_t bytes) {
  if (!machine->shared) {
    machine->shared.reset(new char[bytes]);
    machine->sharedBytes = bytes;
    memset(machine->shared.get(), 0xff, bytes);
  }
  if (bytes != machine->sharedBytes) {
    fprintf(stderr, "emu: shared memory of %zu and of %zu bytes in one kernel\n", machine->sharedBytes, bytes);
    abort();
  }
  return machine->shared.get();
}

void syncThreads() { machine->wait(machine->barrier, machine->count); }

void syncWarp() { machine->wait(warp().barrier, warp().members); }

uint64_t exchange(uint64_t value, int fromLane) {
  Warp& w = warp();
  uint64_t* given = w.given[w.barrier.generation & 1];
  given[place().lane] = value;
  machine->wait(w.barrier, w.members);
  return given[fromLane];
}

void multiplyTiles(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  Warp& w = warp();
  Tiles& tiles = w.tiles[w.barrier.generation & 1];
  const int lane = place().lane;
  memcpy(tiles.a[lane], a, sizeof tiles.a[lane]);
  memcpy(tiles.b[lane], b, sizeof tiles.b[lane]);
  if (w.barrier.arrived + 1 == w.members) tiles.multiply();
  machine->wait(w.barrier, w.members);
  for (int i = 0; i < 4; i++) d[i] += tiles.d[lane][i];
}

}  // namespace emu
