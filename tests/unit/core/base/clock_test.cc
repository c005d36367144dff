#include "core/base/clock.h"

#include <gtest/gtest.h>

namespace engram {
namespace {

TEST(ClockTest, TheSteadyOneBeginsAsTheRealOneAndNeverGoesBack) {
  const Clock& clock = Clock::Steady();
  absl::Time last = clock.Now();
  EXPECT_LT(absl::AbsDuration(absl::Now() - last), absl::Minutes(1));
  const absl::Time began = last;
  while (last < began + absl::Milliseconds(2)) {
    const absl::Time now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, TheFakeOneMovesWhenItIsTold) {
  FakeClock clock(absl::UnixEpoch());
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), absl::UnixEpoch() + absl::Seconds(3));
}

}  // namespace
}  // namespace engram
