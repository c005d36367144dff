#include "table_server/service/gather_pace.h"

#include <gtest/gtest.h>

namespace engram {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);

TEST(GatherPaceTest, NothingIsKnownAtFirst) {
  const GatherPace pace;
  EXPECT_EQ(pace.Expected(1000, 100000), absl::ZeroDuration());
}

TEST(GatherPaceTest, GathersOfOneThreadWaitForAllOthers) {
  GatherPace pace;
  pace.AddThread();
  pace.Took(1000, 1000, 10 * kMs);
  EXPECT_EQ(pace.Expected(1000, 1000), 10 * kMs);
  EXPECT_EQ(pace.Expected(2000, 2000), 20 * kMs);
  EXPECT_EQ(pace.Expected(1000, 14000), 140 * kMs);
}

TEST(GatherPaceTest, ThreadsShareWhatIsInFlight) {
  GatherPace pace;
  for (int i = 0; i < 4; ++i) pace.AddThread();
  pace.Took(1000, 4000, 10 * kMs);  // one each
  EXPECT_EQ(pace.Expected(1000, 1000), 10 * kMs);
  EXPECT_EQ(pace.Expected(1000, 4000), 10 * kMs);
  EXPECT_EQ(pace.Expected(1000, 8000), 20 * kMs);
}

TEST(GatherPaceTest, FallsFasterThanItRises) {
  GatherPace pace;
  for (int i = 0; i < 100; ++i) {
    pace.Took(1000, 1000, 10 * kMs);
    pace.Took(1000, 1000, 30 * kMs);
  }
  EXPECT_LT(pace.Expected(1000, 1000), 18 * kMs);
  for (int i = 0; i < 100; ++i) pace.Took(1000, 1000, 50 * kMs);
  EXPECT_GT(pace.Expected(1000, 1000), 49 * kMs);
  for (int i = 0; i < 50; ++i) pace.Took(1000, 1000, 10 * kMs);
  EXPECT_LT(pace.Expected(1000, 1000), 11 * kMs);
}

TEST(GatherPaceTest, WhatTookNoTimeSaysNothing) {
  GatherPace pace;
  pace.Took(1000, 1000, 10 * kMs);
  pace.Took(1000, 1000, absl::ZeroDuration());
  pace.Took(1000, 1000, -kMs);  // a clock that was set
  pace.Took(0, 0, kMs);
  EXPECT_EQ(pace.Expected(1000, 1000), 10 * kMs);
}

}  // namespace
}  // namespace engram
