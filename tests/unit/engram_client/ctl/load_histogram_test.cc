#include "engram_client/ctl/load_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engram_client/ctl/load_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LatencyHistogramTest, EmptyIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.Quantile(0.5), absl::ZeroDuration());
  EXPECT_EQ(histogram.mean(), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  EXPECT_THAT(histogram.buckets(), IsEmpty());
}

TEST(LatencyHistogramTest, NoValueIsOffByMoreThanOnePercent) {
  const int64_t last = LatencyHistogram::kMaxSeconds * 1'000'000'000;
  for (int64_t ns = 1; ns < last; ns += ns / 300 + 1) {
    LatencyHistogram histogram;
    // Neighbours on both sides, so that nothing is cut to the extremes.
    histogram.Record(absl::ZeroDuration());
    histogram.Record(absl::Nanoseconds(ns));
    histogram.Record(absl::Nanoseconds(last));
    const double read = absl::ToDoubleNanoseconds(histogram.Quantile(0.5));
    ASSERT_LE(std::abs(read - static_cast<double>(ns)),
              0.01 * static_cast<double>(ns))
        << ns << " ns read back as " << read;
  }
}

TEST(LatencyHistogramTest, QuantilesAreThoseOfTheSortedValues) {
  LoadRandom random(1);
  LatencyHistogram histogram;
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) {
    values.push_back(std::exp(random.Unit() * 15));  // 1 ns .. 3 ms
    histogram.Record(absl::Nanoseconds(std::floor(values.back())));
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank =
        std::max<size_t>(static_cast<size_t>(std::ceil(quantile * 10000)), 1);
    const double want = std::floor(values[rank - 1]);
    EXPECT_NEAR(absl::ToDoubleNanoseconds(histogram.Quantile(quantile)), want,
                0.01 * want)
        << quantile;
  }
}

TEST(LatencyHistogramTest, ExtremesAndMeanAreExact) {
  LatencyHistogram histogram;
  histogram.Record(absl::Nanoseconds(1001));
  histogram.Record(absl::Nanoseconds(123456789));
  EXPECT_EQ(histogram.min(), absl::Nanoseconds(1001));
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(123456789));
  EXPECT_EQ(histogram.mean(), absl::Nanoseconds(61728895));
  EXPECT_EQ(histogram.Quantile(1), absl::Nanoseconds(123456789));
}

TEST(LatencyHistogramTest, WhatIsOutOfRangeCountsAtItsEnds) {
  LatencyHistogram histogram;
  histogram.Record(absl::Seconds(-1));
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.min(), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::Seconds(LatencyHistogram::kMaxSeconds));
}

TEST(LatencyHistogramTest, MergedIsAsIfRecordedInOne) {
  LatencyHistogram one, two, all;
  for (int i = 1; i <= 1000; ++i) {
    const absl::Duration latency = absl::Microseconds(i * i);
    (i % 3 == 0 ? one : two).Record(latency);
    all.Record(latency);
  }
  LatencyHistogram merged;
  merged.Merge(one);
  merged.Merge(LatencyHistogram());
  merged.Merge(two);
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min(), all.min());
  EXPECT_EQ(merged.max(), all.max());
  EXPECT_EQ(merged.mean(), all.mean());
  for (int i = 0; i <= 100; ++i) {
    EXPECT_EQ(merged.Quantile(i / 100.0), all.Quantile(i / 100.0));
  }
  merged.Clear();
  EXPECT_EQ(merged.count(), 0);
  EXPECT_EQ(merged.max(), absl::ZeroDuration());
  EXPECT_THAT(merged.buckets(), IsEmpty());
}

TEST(LatencyHistogramTest, BucketsHoldWhatWasRecorded) {
  LatencyHistogram histogram;
  histogram.Record(absl::Nanoseconds(3));
  histogram.Record(absl::Nanoseconds(3));
  histogram.Record(absl::Nanoseconds(129));  // buckets of 2 ns from 128 on
  const auto bucket = [](int64_t from, int64_t to, uint64_t count) {
    return testing::AllOf(
        testing::Field(&LatencyHistogram::Bucket::from,
                       absl::Nanoseconds(from)),
        testing::Field(&LatencyHistogram::Bucket::to, absl::Nanoseconds(to)),
        testing::Field(&LatencyHistogram::Bucket::count, count));
  };
  EXPECT_THAT(histogram.buckets(),
              ElementsAre(bucket(3, 4, 2), bucket(128, 130, 1)));
}

}  // namespace
}  // namespace engram::ctl
