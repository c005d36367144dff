#include "core/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

namespace engram {
namespace {

int NiceOfThisThread() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
}

// sched_attr of the kernel's headers, which cannot be with those of libc.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // of a usual thread: its slice
  uint64_t deadline_ns;
  uint64_t period_ns;
};

// Zero where no slice may be asked for: of the kernel, or of a sandbox.
uint64_t SliceNsOfThisThread() {
  SchedulingAttributes attributes = {};
  syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0);
  return attributes.runtime_ns;
}

TEST(ThreadPriorityTest, IsLowerForTheCallingThreadAlone) {
  const int before = NiceOfThisThread();
  int lowered = 0;
  std::thread([&] {
    LowerThreadPriority();
    lowered = NiceOfThisThread();
    LowerThreadPriority();
    EXPECT_EQ(NiceOfThisThread(), lowered);
  }).join();
  EXPECT_GE(lowered, 10);
  EXPECT_GE(lowered, before);
  EXPECT_EQ(NiceOfThisThread(), before);
}

TEST(ThreadPriorityTest, TheSliceIsShorterForTheCallingThreadAlone) {
  const uint64_t before_ns = SliceNsOfThisThread();
  if (before_ns == 0) GTEST_SKIP() << "there are no slices to ask for";
  uint64_t lowered_ns = 0;
  std::thread([&] {
    LowerThreadPriority();
    lowered_ns = SliceNsOfThisThread();
  }).join();
  EXPECT_LT(lowered_ns, before_ns);
  EXPECT_EQ(SliceNsOfThisThread(), before_ns);
}

}  // namespace
}  // namespace engram
