#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a function must leave as it was, on this stack, and goes on with another.
#if defined(__x86_64__)
asm(R"(
.text
.local emuSwitch
emuSwitch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
static constexpr int savedWords = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.local emuSwitch
emuSwitch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "emu: no switch of stacks for this processor"
#endif
extern "C" void emuSwitch(void** from, void* to);

namespace emu {

namespace {

thread_local void* outside;  // the stack pointer of who entered

#if defined(__SANITIZE_ADDRESS__)
thread_local const void* outsideStack;
thread_local size_t outsideBytes;
#endif

}  // namespace

Fiber::~Fiber() { free(stack_); }

void Fiber::start(void (*entry)()) {
  if (!stack_) stack_ = static_cast<char*>(aligned_alloc(64, stackBytes));
  if (!stack_) abort();
  uintptr_t* top = reinterpret_cast<uintptr_t*>(stack_ + stackBytes - 64);
#if defined(__x86_64__)
  *--top = 0;  // entry's return address, which also aligns its frame
  *--top = reinterpret_cast<uintptr_t>(entry);
  for (int i = 0; i < savedWords; i++) *--top = 0;
#else
  top -= 20;
  for (int i = 0; i < 20; i++) top[i] = 0;
  top[11] = reinterpret_cast<uintptr_t>(entry);
#endif
  pointer_ = top;
}

#if defined(__SANITIZE_ADDRESS__)

void enterFiber(Fiber& fiber) {
  void* shadow;
  __sanitizer_start_switch_fiber(&shadow, fiber.stack_, Fiber::stackBytes);
  emuSwitch(&outside, fiber.pointer_);
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
}

void leaveFiber(Fiber& fiber, bool last) {
  __sanitizer_start_switch_fiber(last ? nullptr : &fiber.shadow_, outsideStack, outsideBytes);
  emuSwitch(&fiber.pointer_, outside);
  __sanitizer_finish_switch_fiber(fiber.shadow_, &outsideStack, &outsideBytes);
}

void fiberEntered() { __sanitizer_finish_switch_fiber(nullptr, &outsideStack, &outsideBytes); }

#else

void enterFiber(Fiber& fiber) { emuSwitch(&outside, fiber.pointer_); }

void leaveFiber(Fiber& fiber, bool) { emuSwitch(&fiber.pointer_, outside); }

void fiberEntered() {}

#endif

}  // namespace emu
