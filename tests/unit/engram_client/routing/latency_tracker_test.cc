#include "engram_client/routing/latency_tracker.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace engram {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(5);

class LatencyTrackerTest : public ::testing::Test {
 protected:
  void Record(absl::Duration time, int times = 1) {
    for (int i = 0; i < times; ++i) tracker_.Record(3, time, now_);
  }
  // Buckets are an eighth wide.
  void ExpectPercentile(double share, absl::Duration time) {
    const absl::Duration got = tracker_.Percentile(3, share, now_);
    EXPECT_GE(got, time);
    EXPECT_LE(got, time * 1.13 + absl::Microseconds(1));
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  LatencyTracker tracker_{kPeriod};
};

TEST(LatencyTrackerClassTest, APowerOfTwoEach) {
  EXPECT_EQ(LatencyTracker::ClassOf(0), 0u);
  EXPECT_EQ(LatencyTracker::ClassOf(1), 1u);
  EXPECT_EQ(LatencyTracker::ClassOf(1024), LatencyTracker::ClassOf(2047));
  EXPECT_NE(LatencyTracker::ClassOf(1023), LatencyTracker::ClassOf(1024));
  EXPECT_EQ(LatencyTracker::ClassOf(~uint64_t{0}),
            LatencyTracker::kClasses - 1);
}

TEST_F(LatencyTrackerTest, NothingIsKnownAtFirst) {
  EXPECT_EQ(tracker_.Count(3, now_), 0u);
  EXPECT_EQ(tracker_.Percentile(3, 0.5, now_), absl::ZeroDuration());
}

TEST_F(LatencyTrackerTest, PercentilesOfAnyLength) {
  for (const absl::Duration unit :
       {absl::Microseconds(1), absl::Microseconds(100), absl::Milliseconds(7),
        absl::Milliseconds(300)}) {
    now_ += 10 * kPeriod;
    for (int i = 1; i <= 100; ++i) Record(unit * i);
    EXPECT_EQ(tracker_.Count(3, now_), 100u);
    ExpectPercentile(0.01, unit);
    ExpectPercentile(0.5, unit * 50);
    ExpectPercentile(0.95, unit * 95);
    ExpectPercentile(1, unit * 100);
  }
}

TEST_F(LatencyTrackerTest, ExtremesHaveAPlace) {
  Record(-absl::Seconds(1));
  ExpectPercentile(1, absl::ZeroDuration());
  Record(absl::Hours(10));
  EXPECT_GE(tracker_.Percentile(3, 1, now_), absl::Minutes(1));
}

TEST_F(LatencyTrackerTest, ClassesAreApart) {
  Record(absl::Milliseconds(1));
  EXPECT_EQ(tracker_.Count(2, now_), 0u);
  EXPECT_EQ(tracker_.Count(4, now_), 0u);
}

TEST_F(LatencyTrackerTest, WhatIsOldGoes) {
  Record(absl::Milliseconds(1), 10);
  now_ += kPeriod;
  Record(absl::Milliseconds(2), 5);
  EXPECT_EQ(tracker_.Count(3, now_), 15u);  // this period and the last
  now_ += kPeriod;
  EXPECT_EQ(tracker_.Count(3, now_), 5u);
  now_ += kPeriod;
  EXPECT_EQ(tracker_.Count(3, now_), 0u);
  Record(absl::Milliseconds(3), 2);
  now_ += 20 * kPeriod;  // nobody asked meanwhile
  EXPECT_EQ(tracker_.Count(3, now_), 0u);
}

TEST_F(LatencyTrackerTest, ManyThreadsRecord) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      absl::Time now = now_;
      for (int i = 0; i < 2000; ++i) {
        tracker_.Record(3, absl::Milliseconds(1), now);
        if (i % 100 == 0) tracker_.Percentile(3, 0.5, now);
        if (t == 0 && i < 1000) now += kPeriod / 100;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(tracker_.Count(3, now_ + 10 * kPeriod), 8000u);
  EXPECT_GT(tracker_.Count(3, now_ + 10 * kPeriod), 0u);
}

}  // namespace
}  // namespace engram
