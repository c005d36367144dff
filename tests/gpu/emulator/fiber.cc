#include "tests/gpu/emulator/fiber.h"

#include <cstddef>

#include "core/base/check.h"

namespace engram::emulator {
namespace {

// Handed over a switch. The emulator runs on one thread.
Fiber* g_from = nullptr;
Fiber* g_to = nullptr;

}  // namespace

Fiber::Fiber(std::byte* stack, size_t stack_bytes, void (*body)())
    : body_(body),
      entered_(false),
      stack_bottom_(stack),
      stack_bytes_(stack_bytes) {
  ENGRAM_CHECK(getcontext(&start_) == 0);
  start_.uc_stack.ss_sp = stack;
  start_.uc_stack.ss_size = stack_bytes;
  start_.uc_link = nullptr;
  makecontext(&start_, &Fiber::Enter, 0);
}

void Fiber::Enter() {
  // The bounds of the thread's own stack are known only here.
  AfterStackSwitch(nullptr, &g_from->stack_bottom_, &g_from->stack_bytes_);
  g_to->body_();
  ENGRAM_CHECK(false);
}

// Not instrumented: the sanitizer would take the jump for the end of all
// frames of the stack that is left.
[[gnu::noinline, gnu::no_sanitize_address]] void Fiber::Switch(Fiber& from,
                                                               Fiber& to) {
  g_from = &from;
  g_to = &to;
  BeforeStackSwitch(&from.asan_state_, to.stack_bottom_, to.stack_bytes_);
  if (__builtin_setjmp(from.jump_) == 0) {
    if (to.entered_) __builtin_longjmp(to.jump_, 1);
    to.entered_ = true;
    setcontext(&to.start_);
  }
  AfterStackSwitch(g_to->asan_state_, &g_from->stack_bottom_,
                   &g_from->stack_bytes_);
}

}  // namespace engram::emulator
