#include "tests/gpu/check/statistics.h"

#include "gtest/gtest.h"

namespace engram::gpu_check {
namespace {

TEST(StatisticsTest, NoSamplesGiveZeros) {
  const Summary summary = Summarize({});
  EXPECT_EQ(summary.samples, 0U);
  EXPECT_EQ(summary.median, 0);
}

TEST(StatisticsTest, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(Summarize({5, 1, 3}).median, 3);
  EXPECT_EQ(Summarize({5, 1, 3, 9}).median, 4);
  EXPECT_EQ(Summarize({7}).median, 7);
}

TEST(StatisticsTest, QuantilesByNearestRank) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Summary summary = Summarize(samples);
  EXPECT_EQ(summary.samples, 100U);
  EXPECT_EQ(summary.p10, 10);
  EXPECT_EQ(summary.p90, 90);
  EXPECT_EQ(summary.least, 1);
}

TEST(StatisticsTest, SamplesAreWholeRoundsOverTheSets) {
  EXPECT_EQ(LaunchesPerSample(10, 1000, 1, 500), 100U);
  EXPECT_EQ(LaunchesPerSample(10, 1000, 8, 500), 104U);
  EXPECT_EQ(LaunchesPerSample(5000, 1000, 4, 500), 4U);
  EXPECT_EQ(LaunchesPerSample(0.001, 1000, 3, 500), 501U);
  EXPECT_EQ(LaunchesPerSample(0, 1000, 1, 500), 500U);
}

}  // namespace
}  // namespace engram::gpu_check
