#include "engram_client/routing/call_times.h"

#include <gtest/gtest.h>

namespace engram {
namespace {

class CallTimesTest : public ::testing::Test {
 protected:
  void Record(uint64_t rows, absl::Duration time, int times) {
    for (int i = 0; i < times; ++i) times_.Record(rows, time, now_);
    now_ += options_.refresh_period;
  }

  const CallTimes::Options options_{};
  absl::Time now_ = absl::FromUnixSeconds(1000);
  CallTimes times_{options_};
};

TEST_F(CallTimesTest, TooFewCallsSayNothing) {
  Record(100, absl::Milliseconds(3), 49);
  EXPECT_EQ(times_.HedgeDelay(100, now_), options_.first_hedge_delay);
  EXPECT_EQ(times_.Usual(100, now_), absl::ZeroDuration());
  Record(100, absl::Milliseconds(3), 1);
  EXPECT_LT(times_.HedgeDelay(100, now_), absl::Milliseconds(4));
  EXPECT_GE(times_.HedgeDelay(100, now_), absl::Milliseconds(3));
}

TEST_F(CallTimesTest, ASizeThatIsNotKnownIsLikeTheNearest) {
  Record(100, absl::Milliseconds(3), 50);
  Record(1000, absl::Milliseconds(9), 50);
  Record(2000, absl::Milliseconds(1), 49);  // too few
  // The next larger one.
  EXPECT_LT(times_.HedgeDelay(10, now_), absl::Milliseconds(4));
  EXPECT_GE(times_.HedgeDelay(300, now_), absl::Milliseconds(9));
  EXPECT_LT(times_.HedgeDelay(300, now_), absl::Milliseconds(11));
  // Else the next smaller one, by size; but not for ever.
  EXPECT_GE(times_.HedgeDelay(3000, now_), absl::Milliseconds(36));
  EXPECT_LT(times_.HedgeDelay(3000, now_), absl::Milliseconds(42));
  EXPECT_EQ(times_.HedgeDelay(10000, now_), options_.first_hedge_delay);
  EXPECT_EQ(times_.Usual(3000, now_), absl::ZeroDuration());
}

TEST_F(CallTimesTest, NearlyAllCallsEndBeforeTheDelay) {
  Record(100, absl::Milliseconds(3), 960);
  Record(100, absl::Milliseconds(20), 15);
  Record(100, absl::Milliseconds(60), 25);
  EXPECT_GE(times_.HedgeDelay(100, now_), absl::Milliseconds(20));
  EXPECT_LT(times_.HedgeDelay(100, now_), absl::Milliseconds(24));
  EXPECT_LT(times_.Usual(100, now_), absl::Milliseconds(4));
}

TEST_F(CallTimesTest, QuickCallsAreNotHedgedAtOnce) {
  Record(4, absl::Microseconds(80), 100);
  EXPECT_EQ(times_.HedgeDelay(4, now_), options_.shortest_hedge_delay);
  EXPECT_LT(times_.Usual(4, now_), absl::Microseconds(100));
}

TEST_F(CallTimesTest, LooksNowAndThen) {
  Record(100, absl::Milliseconds(3), 100);
  const absl::Duration before = times_.HedgeDelay(100, now_);
  for (int i = 0; i < 1000; ++i) {
    times_.Record(100, absl::Milliseconds(30), now_);
  }
  EXPECT_EQ(times_.HedgeDelay(100, now_), before);
  now_ += options_.refresh_period;
  EXPECT_GE(times_.HedgeDelay(100, now_), absl::Milliseconds(30));
}

TEST_F(CallTimesTest, ForgetsWhatWas) {
  Record(100, absl::Milliseconds(3), 100);
  EXPECT_LT(times_.HedgeDelay(100, now_), absl::Milliseconds(4));
  now_ += absl::Minutes(1);
  EXPECT_EQ(times_.HedgeDelay(100, now_), options_.first_hedge_delay);
}

}  // namespace
}  // namespace engram
