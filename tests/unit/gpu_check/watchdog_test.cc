#include "tests/gpu/check/watchdog.h"

#include <string>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "gtest/gtest.h"

namespace engram::gpu_check {
namespace {

struct Expiry {
  std::string what;
  absl::Duration limit;
  Notification happened;

  Watchdog::OnExpiry Callback() {
    return [this](const std::string& expired, absl::Duration its_limit) {
      what = expired;
      limit = its_limit;
      happened.Notify();
    };
  }
  bool WaitLong() { return happened.WaitUntil(absl::Now() + absl::Minutes(1)); }
};

TEST(WatchdogTest, SaysWhatTookTooLong) {
  Expiry expiry;
  Watchdog watchdog(expiry.Callback());
  watchdog.Arm("gather", absl::Milliseconds(1));
  ASSERT_TRUE(expiry.WaitLong());
  EXPECT_EQ(expiry.what, "gather");
  EXPECT_EQ(expiry.limit, absl::Milliseconds(1));
}

TEST(WatchdogTest, TheLastLimitCounts) {
  Expiry expiry;
  Watchdog watchdog(expiry.Callback());
  watchdog.Arm("first", absl::Hours(1));
  watchdog.Arm("second", absl::Milliseconds(1));
  ASSERT_TRUE(expiry.WaitLong());
  EXPECT_EQ(expiry.what, "second");
}

TEST(WatchdogTest, WhatEndsInTimeIsLeftAlone) {
  Expiry expiry;
  {
    Watchdog watchdog(expiry.Callback());
    watchdog.Arm("gather", absl::Hours(1));
    watchdog.Disarm();
    watchdog.Arm("project", absl::InfiniteDuration());
  }
  EXPECT_FALSE(expiry.happened.HasBeenNotified());
}

}  // namespace
}  // namespace engram::gpu_check
