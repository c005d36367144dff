#include "engram_client/rpc/call_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

#include "core/wire/error_detail.h"
#include "tests/testing/captured_log.h"

namespace engram {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OutcomeOfTest, OnlyFaultsAreFailures) {
  EXPECT_EQ(OutcomeOf(absl::OkStatus()), CallOutcome::kAnswered);
  for (const absl::Status& status :
       {absl::UnavailableError(""), absl::InternalError(""),
        absl::UnknownError(""), absl::InvalidArgumentError(""),
        MakeError(ErrorReason::kRowOutOfRange, ""),
        MakeError(ErrorReason::kUnknownLayer, "")}) {
    EXPECT_EQ(OutcomeOf(status), CallOutcome::kFailed) << status;
  }
  for (const absl::Status& status :
       {MakeError(ErrorReason::kOverloaded, ""),
        MakeError(ErrorReason::kDraining, ""),
        MakeError(ErrorReason::kNotReady, ""),
        MakeError(ErrorReason::kWrongTable, ""),
        PartitionNotHereError("a", {}, {}), absl::CancelledError("")}) {
    EXPECT_EQ(OutcomeOf(status), CallOutcome::kRefused) << status;
  }
  EXPECT_EQ(OutcomeOf(absl::DataLossError("")), CallOutcome::kCorrupt);
  EXPECT_EQ(OutcomeOf(absl::DeadlineExceededError("")), CallOutcome::kTimedOut);
}

class CallMonitorTest : public ::testing::Test {
 protected:
  CallMonitor MakeMonitor() {
    return CallMonitor(2, {.max_hedge_buffer_bytes = 1000,
                           .budget = {.share = 0.05, .burst = 10},
                           .registry = registry_});
  }
  void End(CallMonitor& monitor, ServerIndex server, CallOutcome outcome,
           absl::Duration time, int times = 1) {
    for (int i = 0; i < times; ++i) {
      monitor.CallEnded({server, 10, outcome, time}, now_);
    }
  }
  // The value of a counter or gauge whose labels, if any, have this value.
  double Metric(const std::string& name, const std::string& label = "") const {
    for (const auto& family : registry_->Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        const bool is_it = label.empty() ? metric.label.empty()
                                         : !metric.label.empty() &&
                                               metric.label[0].value == label;
        if (is_it) return metric.counter.value + metric.gauge.value;
      }
    }
    ADD_FAILURE() << "no metric " << name << " " << label;
    return -1;
  }

  const std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>();
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(CallMonitorTest, ASlowServerIsEjectedAndCounted) {
  CallMonitor monitor = MakeMonitor();
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2), 100);
  now_ += absl::Seconds(1);
  EXPECT_LT(monitor.HedgeDelay(10, now_), absl::Milliseconds(3));
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2));
  End(monitor, 1, CallOutcome::kAnswered, absl::Milliseconds(200), 30);
  EXPECT_TRUE(monitor.health().IsOut(1, now_));
  EXPECT_EQ(Metric("engram_client_ejections_total", "latency"), 1);
  EXPECT_EQ(Metric("engram_client_servers_ejected"), 1);
  EXPECT_EQ(monitor.stats().ejections, 1u);
  EXPECT_EQ(monitor.stats().servers_ejected, 1u);
}

TEST_F(CallMonitorTest, TheLogSaysWhichServerIsLeftOutAndWhenItIsBack) {
  const test::CapturedLog log;
  CallMonitor monitor = MakeMonitor();
  monitor.AddServer(1, 0, "10.0.0.2:7100");
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2), 100);
  End(monitor, 1, CallOutcome::kFailed, absl::Milliseconds(1), 30);
  EXPECT_THAT(log.text(),
              HasSubstr("10.0.0.2:7100: left out where others can answer: too "
                        "many of its calls fail"));
  now_ += absl::Seconds(2);
  EXPECT_THAT(log.text(), Not(HasSubstr("well again")));
  End(monitor, 1, CallOutcome::kAnswered, absl::Milliseconds(2), 100);
  EXPECT_THAT(log.text(), HasSubstr("10.0.0.2:7100: well again"));
}

TEST_F(CallMonitorTest, WhatAServerThatIsNotWellTakesIsNotUsual) {
  CallMonitor monitor = MakeMonitor();
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2), 100);
  End(monitor, 1, CallOutcome::kFailed, absl::Milliseconds(1), 30);
  ASSERT_TRUE(monitor.health().IsOut(1, now_));
  End(monitor, 1, CallOutcome::kAnswered, absl::Seconds(2), 1000);
  now_ += absl::Seconds(1);
  EXPECT_LT(monitor.HedgeDelay(10, now_), absl::Milliseconds(3));
}

TEST_F(CallMonitorTest, ABeatenCallTookAtLeastAsLongAsItRan) {
  CallMonitor monitor = MakeMonitor();
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2), 90);
  End(monitor, 0, CallOutcome::kBeaten, absl::Milliseconds(8), 10);
  now_ += absl::Seconds(1);
  EXPECT_GE(monitor.HedgeDelay(10, now_), absl::Milliseconds(8));
}

TEST_F(CallMonitorTest, HedgesNeedTokensAndMemory) {
  CallMonitor monitor = MakeMonitor();
  EXPECT_TRUE(monitor.hedging());
  const auto some = monitor.MayHedge({100, 200}, ServerHealth::Doubt::kNone);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[1].bytes().size(), 200u);
  EXPECT_EQ(Metric("engram_client_hedge_buffer_bytes"), 300);
  EXPECT_EQ(Metric("engram_client_hedge_buffer_limit_bytes"), 1000);
  EXPECT_EQ(Metric("engram_client_budget_tokens"), 8);
  EXPECT_TRUE(monitor.MayHedge({400, 400}, ServerHealth::Doubt::kNone).empty());
  EXPECT_EQ(Metric("engram_client_hedges_refused_total", "buffer"), 1);
  EXPECT_EQ(Metric("engram_client_budget_tokens"), 8);
  EXPECT_TRUE(
      monitor.MayHedge({1, 1, 1, 1}, ServerHealth::Doubt::kNone).empty());
  EXPECT_EQ(Metric("engram_client_hedges_refused_total", "budget"), 1);
  EXPECT_EQ(Metric("engram_client_hedge_buffer_bytes"), 300);
  EXPECT_EQ(monitor.MayHedge({1, 1, 1, 1}, ServerHealth::Doubt::kOut).size(),
            4u);
  EXPECT_EQ(
      monitor.MayHedge({1, 1, 1, 1}, ServerHealth::Doubt::kSuspect).size(), 4u);
  EXPECT_EQ(monitor.stats().refused_hedges, 2u);
}

TEST_F(CallMonitorTest, RetriesBeyondTheBudgetAreHeld) {
  CallMonitor monitor = MakeMonitor();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(monitor.MayRetryAtOnce());
  EXPECT_FALSE(monitor.MayRetryAtOnce());
  EXPECT_EQ(monitor.stats().held_retries, 1u);
  EXPECT_EQ(Metric("engram_client_budget_tokens"), 0);
  for (int i = 0; i < 20; ++i) monitor.CallStarted(CallKind::kFirst);
  for (int i = 0; i < 50; ++i) monitor.CallStarted(CallKind::kRetry);
  EXPECT_EQ(Metric("engram_client_budget_tokens"), 1);
  EXPECT_TRUE(monitor.MayRetryAtOnce());
  EXPECT_EQ(monitor.stats().first_calls, 20u);
  EXPECT_EQ(monitor.stats().retries, 50u);
}

TEST_F(CallMonitorTest, EndsOfCallsByOutcomeAndSize) {
  CallMonitor monitor = MakeMonitor();
  End(monitor, 0, CallOutcome::kAnswered, absl::Milliseconds(2), 3);
  End(monitor, 0, CallOutcome::kCorrupt, absl::Milliseconds(2), 2);
  EXPECT_EQ(Metric("engram_client_calls_ended_total", "answered"), 3);
  EXPECT_EQ(Metric("engram_client_calls_ended_total", "corrupt"), 2);
  EXPECT_EQ(Metric("engram_client_calls_ended_total", "beaten"), 0);
  monitor.CallOverdue(1, now_);
  End(monitor, 0, CallOutcome::kCancelled, absl::Milliseconds(2), 4);
  EXPECT_EQ(Metric("engram_client_calls_overdue_total"), 1);
  EXPECT_EQ(Metric("engram_client_calls_ended_total", "cancelled"), 4);
  EXPECT_EQ(Metric("engram_client_hedges_total", "won"), 0);
  EXPECT_EQ(monitor.stats().corrupt_replies, 2u);
  std::map<std::string, uint64_t> calls;
  for (const uint64_t rows : {1, 2, 4, 5, 16, 65537, 10000000}) {
    monitor.metrics().CallTook(rows, absl::Milliseconds(1));
  }
  for (const auto& family : registry_->Collect()) {
    if (family.name != "engram_client_call_seconds") continue;
    for (const auto& metric : family.metric) {
      calls[metric.label[0].value] = metric.histogram.sample_count;
    }
  }
  EXPECT_EQ(calls["1"], 1u);
  EXPECT_EQ(calls["4"], 2u);
  EXPECT_EQ(calls["16"], 5u);  // three of 10 rows
  EXPECT_EQ(calls["+Inf"], 2u);
}

TEST_F(CallMonitorTest, WithoutARegistryItCountsAllTheSame) {
  CallMonitor monitor(1, {});
  EXPECT_FALSE(monitor.hedging());
  monitor.CallStarted(CallKind::kFirst);
  EXPECT_EQ(monitor.stats().first_calls, 1u);
}

}  // namespace
}  // namespace engram
