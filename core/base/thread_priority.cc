#include "core/base/thread_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace engram {
namespace {

// A thirtieth of the weight of a usual thread: it goes on, if slowly, where
// all processors are busy.
constexpr int kNice = 15;

}  // namespace

void LowerThreadPriority() {
  const auto thread = static_cast<id_t>(gettid());
  // Of Linux, where a thread has a nice value of its own. To lower it is always
  // allowed.
  const int now = getpriority(PRIO_PROCESS, thread);
  setpriority(PRIO_PROCESS, thread, std::max(now, kNice));
}

}  // namespace engram
