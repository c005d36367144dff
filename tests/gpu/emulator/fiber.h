#ifndef ENGRAM_TESTS_GPU_EMULATOR_FIBER_H_
#define ENGRAM_TESTS_GPU_EMULATOR_FIBER_H_

#include <ucontext.h>

#include <cstddef>

namespace engram::emulator {

// A stack of its own that Switch leaves and enters, without the system call
// that swapcontext makes each time.
class Fiber {
 public:
  // What the calling thread runs on. Only to be switched from before it is
  // switched to.
  Fiber() = default;
  // `body` runs on the stack at the first switch; it must not return.
  Fiber(std::byte* stack, size_t stack_bytes, void (*body)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Returns when something switches to `from` again. REQUIRES: `from` is what
  // runs now, and is not `to`.
  static void Switch(Fiber& from, Fiber& to);

 private:
  static void Enter();

  void (*body_)() = nullptr;
  bool entered_ = true;
  ucontext_t start_;
  void* jump_[5];  // the layout is the compiler's
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* asan_state_ = nullptr;
};

// What AddressSanitizer must be told of a change of stacks; nothing in builds
// without it.
void BeforeStackSwitch(void** save, const void* bottom, size_t bytes);
void AfterStackSwitch(void* saved, const void** old_bottom, size_t* old_bytes);

}  // namespace engram::emulator

#endif  // ENGRAM_TESTS_GPU_EMULATOR_FIBER_H_
