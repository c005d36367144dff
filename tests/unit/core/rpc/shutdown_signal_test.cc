#include "core/rpc/shutdown_signal.h"

#include <gtest/gtest.h>

#include <csignal>

#include "absl/time/clock.h"

namespace engram {
namespace {

TEST(ShutdownSignalTest, SeesASignalAndKeepsSeeingIt) {
  const ShutdownSignal signal;
  EXPECT_FALSE(signal.WaitUntil(absl::InfinitePast()));
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(signal.WaitUntil(absl::InfiniteFuture()));
  EXPECT_TRUE(signal.WaitUntil(absl::InfinitePast()));
}

}  // namespace
}  // namespace engram
