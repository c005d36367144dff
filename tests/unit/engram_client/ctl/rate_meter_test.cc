#include "engram_client/ctl/rate_meter.h"

#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

absl::Time At(double seconds) {
  return absl::FromUnixSeconds(1'000'000) + absl::Seconds(seconds);
}

TEST(RateMeterTest, NeedsTwoLooks) {
  RateMeter meter;
  EXPECT_EQ(meter.per_second(), std::nullopt);
  meter.Add(At(0), 100);
  EXPECT_EQ(meter.per_second(), std::nullopt);
  meter.Add(At(0), 100);
  EXPECT_EQ(meter.per_second(), std::nullopt);
  EXPECT_EQ(meter.TimeFor(1), std::nullopt);
  meter.Add(At(2), 300);
  EXPECT_EQ(meter.per_second(), 100);
  EXPECT_EQ(meter.TimeFor(50), absl::Milliseconds(500));
}

TEST(RateMeterTest, ForgetsWhatIsLongAgo) {
  RateMeter meter;
  meter.Add(At(0), 0);
  meter.Add(At(1), 1'000'000);
  meter.Add(At(11), 1'000'010);
  EXPECT_EQ(meter.per_second(), 1);
}

TEST(RateMeterTest, StandsStill) {
  RateMeter meter;
  meter.Add(At(0), 5);
  meter.Add(At(1), 5);
  EXPECT_EQ(meter.per_second(), 0);
  EXPECT_EQ(meter.TimeFor(1), std::nullopt);
}

TEST(RateMeterTest, BeginsAnewWhereTheCounterDid) {
  RateMeter meter;
  meter.Add(At(0), 5000);
  meter.Add(At(1), 10);
  EXPECT_EQ(meter.per_second(), std::nullopt);
  meter.Add(At(2), 30);
  EXPECT_EQ(meter.per_second(), 20);
}

}  // namespace
}  // namespace engram::ctl
