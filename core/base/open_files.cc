#include "core/base/open_files.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "core/base/check.h"
#include "core/base/log.h"

namespace engram {

uint64_t RaiseOpenFileLimit() {
  rlimit limit;
  ENGRAM_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur == limit.rlim_max) return limit.rlim_cur;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return raised.rlim_cur;
  spdlog::warn("no more than {} open files, {} would be allowed: {}",
               limit.rlim_cur, limit.rlim_max, std::strerror(errno));
  return limit.rlim_cur;
}

}  // namespace engram
