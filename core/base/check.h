#ifndef ENGRAM_CORE_BASE_CHECK_H_
#define ENGRAM_CORE_BASE_CHECK_H_

// ENGRAM_CHECK(condition): for our own bugs only, never for input. Prints the
// place and the condition and aborts, in every build.
#define ENGRAM_CHECK(condition)                      \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::engram::internal::CheckFailed(#condition, __FILE__, __LINE__))

namespace engram::internal {

[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace engram::internal

#endif  // ENGRAM_CORE_BASE_CHECK_H_
