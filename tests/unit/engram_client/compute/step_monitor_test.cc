#include "engram_client/compute/step_monitor.h"

#include <gtest/gtest.h>

#include "tests/testing/metric_values.h"

namespace engram {
namespace {

constexpr absl::Duration kFirstDelay = absl::Milliseconds(700);

StepWork Apply(uint64_t tokens) {
  return {.kind = StepWork::Kind::kApply, .tokens = tokens};
}
StepWork Layer(uint64_t tokens) {
  return {.kind = StepWork::Kind::kLayer, .tokens = tokens};
}

TEST(StepMonitorTest, LearnsWhatEachSizeOfEachKindTakes) {
  StepMonitor monitor(kFirstDelay);
  for (int i = 0; i < 100; ++i) {
    monitor.Took(Apply(8), absl::Milliseconds(60));
    monitor.Took(Layer(1), absl::Milliseconds(30));
    monitor.Took(Layer(1000), absl::Milliseconds(1000));
  }
  EXPECT_GE(monitor.HedgeDelay(Apply(8)), absl::Milliseconds(180));
  EXPECT_LE(monitor.HedgeDelay(Apply(8)), absl::Milliseconds(220));
  EXPECT_GE(monitor.HedgeDelay(Layer(1)), absl::Milliseconds(90));
  EXPECT_LE(monitor.HedgeDelay(Layer(1)), absl::Milliseconds(110));
  EXPECT_GE(monitor.HedgeDelay(Layer(1000)), absl::Milliseconds(3000));
}

TEST(StepMonitorTest, UnknownSizesGetTheFirstDelay) {
  StepMonitor monitor(kFirstDelay);
  EXPECT_EQ(monitor.HedgeDelay(Apply(8)), kFirstDelay);
  for (int i = 0; i < 10; ++i) monitor.Took(Layer(8), absl::Milliseconds(1));
  EXPECT_EQ(monitor.HedgeDelay(Layer(8)), kFirstDelay);
}

TEST(StepMonitorTest, HasAShortestDelay) {
  StepMonitor monitor(kFirstDelay);
  for (int i = 0; i < 100; ++i) {
    monitor.Took(Layer(1), absl::Microseconds(50));
  }
  EXPECT_EQ(monitor.HedgeDelay(Layer(1)), absl::Milliseconds(10));
}

TEST(StepMonitorTest, HedgesAndRetriesAreAShareOfTheSteps) {
  const auto registry = std::make_shared<prometheus::Registry>();
  StepMonitor monitor(kFirstDelay, registry);
  int by_chance = 0;
  while (monitor.MayHedge(/*suspect=*/false)) ++by_chance;
  EXPECT_EQ(by_chance, 50);
  for (int i = 0; i < 25; ++i) {
    EXPECT_TRUE(monitor.MayHedge(/*suspect=*/true));
    EXPECT_TRUE(monitor.MayRetryAtOnce());
  }
  EXPECT_FALSE(monitor.MayHedge(/*suspect=*/true));
  EXPECT_FALSE(monitor.MayRetryAtOnce());
  for (int i = 0; i < 20; ++i) monitor.StepStarted();
  EXPECT_TRUE(monitor.MayHedge(/*suspect=*/true));
  EXPECT_FALSE(monitor.MayHedge(/*suspect=*/true));

  const ComputeClient::Stats stats = monitor.stats();
  EXPECT_EQ(stats.steps, 20);
  EXPECT_EQ(stats.hedges, 76);
  EXPECT_EQ(stats.refused_hedges, 3);
  EXPECT_EQ(stats.retries, 26);
  EXPECT_EQ(stats.held_retries, 1);
  auto metrics = test::MetricValues(*registry);
  EXPECT_EQ(metrics["engram_compute_client_hedges_total{}"], 76);
  EXPECT_EQ(metrics["engram_compute_client_hedges_refused_total{}"], 3);
  EXPECT_EQ(metrics["engram_compute_client_held_retries_total{}"], 1);
  EXPECT_EQ(metrics["engram_compute_client_budget_tokens{}"], 0);
  EXPECT_EQ(metrics["engram_compute_client_budget_tokens_limit{}"], 100);
}

}  // namespace
}  // namespace engram
