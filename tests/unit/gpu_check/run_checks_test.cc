#include "tests/gpu/check/run_checks.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::gpu_check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunChecksTest : public testing::Test {
 protected:
  RunChecksTest() : watchdog_([](const std::string&, absl::Duration) {}) {}

  Check Make(const std::string& name, absl::StatusOr<Outcome> outcome) {
    Check check;
    check.name = name;
    check.limit = absl::Hours(1);
    check.run = [this, name, outcome] {
      ran_.push_back(name);
      return outcome;
    };
    return check;
  }

  void Run(const std::vector<Check>& checks, const RunLimits& limits) {
    RunChecks(
        checks, limits, watchdog_, report_,
        [this](const CheckResult& result) { results_.push_back(result); });
  }

  Watchdog watchdog_;
  Report report_;
  std::vector<std::string> ran_;
  std::vector<CheckResult> results_;
};

TEST_F(RunChecksTest, ReportsEveryOutcome) {
  Run({Make("a", Passed("12 rows")), Make("b", absl::DataLossError("row 3")),
       Make("c", Skipped("no room"))},
      {});
  EXPECT_THAT(ran_, ElementsAre("a", "b", "c"));
  ASSERT_EQ(results_.size(), 3U);
  EXPECT_EQ(results_[0].verdict, Verdict::kOk);
  EXPECT_EQ(results_[0].detail, "12 rows");
  EXPECT_EQ(results_[1].verdict, Verdict::kFailed);
  EXPECT_THAT(results_[1].detail, HasSubstr("row 3"));
  EXPECT_EQ(results_[2].verdict, Verdict::kSkipped);
  EXPECT_EQ(report_.Count(Verdict::kOk), 1U);
  EXPECT_EQ(report_.Count(Verdict::kFailed), 1U);
  EXPECT_EQ(report_.Count(Verdict::kSkipped), 1U);
}

TEST_F(RunChecksTest, QuickLeavesOutTimings) {
  std::vector<Check> checks = {Make("a", Passed("")), Make("b", Passed(""))};
  checks[1].in_quick = false;
  Run(checks, {.quick = true});
  EXPECT_THAT(ran_, ElementsAre("a"));
  EXPECT_EQ(results_[1].verdict, Verdict::kSkipped);
  EXPECT_THAT(results_[1].detail, HasSubstr("--quick"));
}

TEST_F(RunChecksTest, NothingStartsAfterTheLimitOfAll) {
  Run({Make("a", Passed(""))}, {.all = -absl::Seconds(1)});
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(results_[0].verdict, Verdict::kSkipped);
}

}  // namespace
}  // namespace engram::gpu_check
