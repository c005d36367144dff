#include "core/base/thread_priority.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace engram {
namespace {

// A thirtieth of the weight of a usual thread: it goes on, if slowly, where
// all processors are busy.
constexpr int kNice = 15;

// The least that the kernel takes.
constexpr uint64_t kSliceNs = 100'000;

// Of Linux, where a thread has a nice value of its own. To lower it is always
// allowed.
void LowerNice() {
  const auto thread = static_cast<id_t>(gettid());
  const int now = getpriority(PRIO_PROCESS, thread);
  setpriority(PRIO_PROCESS, thread, std::max(now, kNice));
}

// A thread that wakes waits until the one that runs has had its slice, however
// low its priority (EEVDF, Linux 6.6 and later). From 6.12 on a shorter one may
// be asked for; kernels before ignore that. What a
// sandbox forbids stays as it is: it costs time, no more.
void ShortenSlice() {
  sched_attr attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
      attributes.sched_policy != SCHED_NORMAL) {
    return;
  }
  attributes.sched_runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void LowerThreadPriority() {
  LowerNice();
  ShortenSlice();
}

}  // namespace engram
