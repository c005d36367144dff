#include "core/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace engram {
namespace {

int NiceOfThisThread() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
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

}  // namespace
}  // namespace engram
