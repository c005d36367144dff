#include "engram_client/ctl/load_schedule.h"

#include <array>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using Options = LoadSchedule::Options;

std::vector<LoadCall> AllOf(const Options& options) {
  LoadSchedule schedule(options);
  std::vector<LoadCall> calls;
  while (const auto call = schedule.Next()) calls.push_back(*call);
  return calls;
}

TEST(LoadScheduleTest, EvenGapsAndTheEnd) {
  const std::vector<LoadCall> calls = AllOf({.arrivals = Arrivals::kEven,
                                             .calls_per_second = 4,
                                             .sizes = {{24, 1}},
                                             .end = absl::Seconds(1.5)});
  ASSERT_EQ(calls.size(), 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(calls[i].when, absl::Milliseconds(250 * i));
  }
}

TEST(LoadScheduleTest, EvenGapsDoNotDrift) {
  LoadSchedule schedule({.arrivals = Arrivals::kEven,
                         .calls_per_second = 3,
                         .sizes = {{1, 1}},
                         .end = absl::Hours(1000)});
  absl::Duration last;
  for (int i = 0; i <= 300'000; ++i) last = schedule.Next()->when;
  EXPECT_LT(absl::AbsDuration(last - absl::Seconds(100'000)),
            absl::Nanoseconds(1));
}

// Gaps of independent callers: mean and deviation are 1 / rate, and a gap is
// above the mean with a probability of 1 / e.
TEST(LoadScheduleTest, PoissonGapsAreExponential) {
  const std::vector<LoadCall> calls = AllOf({.calls_per_second = 1000,
                                             .sizes = {{24, 1}},
                                             .end = absl::Seconds(100)});
  const auto count = static_cast<double>(calls.size());
  EXPECT_NEAR(count, 100'000, 1500);
  double sum = 0, squares = 0, above = 0;
  absl::Duration last;
  for (const LoadCall& call : calls) {
    const double ms = absl::ToDoubleMilliseconds(call.when - last);
    EXPECT_GE(ms, 0);
    sum += ms;
    squares += ms * ms;
    above += ms > 1 ? 1 : 0;
    last = call.when;
  }
  EXPECT_NEAR(sum / count, 1, 0.015);
  EXPECT_NEAR(std::sqrt(squares / count - std::pow(sum / count, 2)), 1, 0.02);
  EXPECT_NEAR(above / count, std::exp(-1), 0.01);
}

TEST(LoadScheduleTest, SizesComeByWeight) {
  const std::vector<LoadCall> calls =
      AllOf({.calls_per_second = 1000,
             .sizes = {{24, 70}, {1536, 25}, {49152, 5}},
             .end = absl::Seconds(50)});
  std::array<double, 3> counts = {};
  for (const LoadCall& call : calls) ++counts[call.size_index];
  const auto all = static_cast<double>(calls.size());
  EXPECT_NEAR(counts[0] / all, 0.70, 0.02);
  EXPECT_NEAR(counts[1] / all, 0.25, 0.02);
  EXPECT_NEAR(counts[2] / all, 0.05, 0.01);
}

TEST(LoadScheduleTest, TheSeedDecidesEverything) {
  const auto calls = [](uint64_t seed) {
    std::vector<std::array<uint64_t, 3>> all;
    for (const LoadCall& call : AllOf({.calls_per_second = 100,
                                .sizes = {{1, 1}, {2, 1}},
                                .end = absl::Seconds(1),
                                .seed = seed})) {
      all.push_back({static_cast<uint64_t>(absl::ToInt64Nanoseconds(call.when)),
                     call.size_index, call.seed});
    }
    return all;
  };
  EXPECT_EQ(calls(7), calls(7));
  EXPECT_NE(calls(7), calls(8));
}

}  // namespace
}  // namespace engram::ctl
