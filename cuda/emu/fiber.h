// Threads that take turns by themselves, on stacks of their own.
#pragma once

#include <stddef.h>

namespace emu {

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next enterFiber begins with entry, which must not return.
  void start(void (*entry)());

  static constexpr size_t stackBytes = 64 << 10;

 private:
  friend void enterFiber(Fiber&);
  friend void leaveFiber(Fiber&, bool);

  void* pointer_ = nullptr;  // of the stack
  char* stack_ = nullptr;
  void* shadow_ = nullptr;  // of the address sanitizer
};

// Runs a fiber until it leaves.
void enterFiber(Fiber& fiber);

// Goes back to who entered the fiber; last says that it will never be entered again.
void leaveFiber(Fiber& fiber, bool last);

// The first that a fiber does.
void fiberEntered();

}  // namespace emu
