#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace engram::internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace engram::internal
