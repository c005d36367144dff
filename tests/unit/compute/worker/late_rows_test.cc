// Rows that have a time of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/testing/metric_values.h"
#include "tests/unit/compute/worker/step_under_test.h"

namespace engram {
namespace {

using test::EngineFixture;
using test::ExpectNothingHeld;
using test::FakeRowSource;
using test::MakeSpec;
using test::Soon;
using test::StepLog;
using test::StepUnderTest;
using test::Streams;
using ::testing::HasSubstr;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr auto kAtOnce = FakeRowSource::Mode::kAtOnce;

// A step whose layers' rows are needed after 1 ms and 14 ms.
struct TimedStep {
  explicit TimedStep(EngineFixture& f,
                     absl::Time deadline = absl::InfiniteFuture()) {
    StepSpec spec = MakeSpec(f.block, {1, 2});
    spec.layer_timeouts = {
        {spec.layers[1], absl::Milliseconds(14)},
        {spec.layers[0], absl::Milliseconds(1)},
    };
    auto begun = f.engine->Begin(std::move(spec), deadline, log);
    EXPECT_TRUE(begun.ok()) << begun.status();
    step = *std::move(begun);
  }

  std::shared_ptr<StepLog> log = std::make_shared<StepLog>();
  std::shared_ptr<Step> step;
};

double LateRows(const EngineFixture& f, LayerId layer) {
  const auto values = test::MetricValues(f.registry);
  const auto found = values.find(absl::StrCat(
      "engram_compute_late_rows_total{layer=", ToInt(layer), ",}"));
  return found == values.end() ? 0 : found->second;
}

TEST(LateRowsTest, EachLayersFetchHasItsOwnDeadline) {
  EngineFixture f(kWhenTold);
  const absl::Time begun = f.clock.Now();
  TimedStep timed(f);
  timed.step->Start();
  f.rows.AwaitFetches(2);
  EXPECT_EQ(f.rows.deadline(0), begun + absl::Milliseconds(1));
  EXPECT_EQ(f.rows.deadline(1), begun + absl::Milliseconds(14));
  TimedStep earlier(f, begun + absl::Milliseconds(5));
  earlier.step->Start();
  f.rows.AwaitFetches(4);
  EXPECT_EQ(f.rows.deadline(2), begun + absl::Milliseconds(1));
  EXPECT_EQ(f.rows.deadline(3), begun + absl::Milliseconds(5));
}

TEST(LateRowsTest, RowsThatAreLateForTheirLayerEndTheStep) {
  EngineFixture f(kWhenTold);
  TimedStep timed(f);
  timed.step->Start();
  f.rows.AwaitFetches(2);
  f.rows.Complete(1);
  f.clock.Advance(absl::Milliseconds(1));
  f.rows.Complete(0, absl::DeadlineExceededError("server t3 is slow"));
  const absl::Status status = timed.log->AwaitEnd();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  const LayerId first = f.rows.layer(0);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rows of layer " + std::to_string(ToInt(first)) +
                        " were not there within 1ms"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("server t3 is slow"));
  EXPECT_EQ(LateRows(f, first), 1);
  EXPECT_EQ(LateRows(f, f.rows.layer(1)), 0);
  ExpectNothingHeld(f);
}

TEST(LateRowsTest, ALayersTimeIsOverAlsoBeforeItsFetchKnows) {
  EngineFixture f(kWhenTold);
  TimedStep timed(f);
  timed.step->Start();
  f.rows.AwaitFetches(2);
  f.rows.Complete(0);
  f.clock.Advance(absl::Milliseconds(13));
  f.engine->ExpireSteps();  // the first layer's rows were there in time
  EXPECT_FALSE(timed.log->ended());
  f.clock.Advance(absl::Milliseconds(1));
  f.engine->ExpireSteps();
  const absl::Status status = timed.log->AwaitEnd();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 14ms"));
  EXPECT_EQ(f.rows.cancelled(), 1);
  EXPECT_EQ(LateRows(f, f.rows.layer(1)), 1);
  ExpectNothingHeld(f);
}

TEST(LateRowsTest, AStepIsNotFetchedThatIsLateAlready) {
  EngineFixture f(kWhenTold);
  TimedStep timed(f);
  f.clock.Advance(absl::Milliseconds(2));
  timed.step->Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(timed.log->AwaitEnd()));
  EXPECT_EQ(f.rows.started(), 0);
}

TEST(LateRowsTest, RowsInTimeMayWaitForTheirStreams) {
  EngineFixture f(kAtOnce);
  TimedStep timed(f);
  timed.step->Start();
  f.rows.AwaitFetches(2);
  // The rows are there once their step says so on the hashing thread.
  Notification hashed;
  f.engine->RunOnHashThread({}, [&] { hashed.Notify(); });
  ASSERT_TRUE(hashed.WaitUntil(Soon()));
  f.clock.Advance(absl::Seconds(1));
  f.engine->ExpireSteps();
  const std::string streams = Streams(f.block, 2);
  for (const LayerLayout& layer : f.block.layout().layers()) {
    timed.step->AddChunk(
        layer.layer_id,
        {.streams = {reinterpret_cast<const std::byte*>(streams.data()),
                     streams.size()}});
  }
  EXPECT_TRUE(timed.log->AwaitEnd().ok());
}

TEST(LateRowsTest, DeadTokensHaveNoRowsToBeLate) {
  EngineFixture f(kWhenTold);
  StepSpec spec = MakeSpec(f.block, {1}, {false});
  spec.layer_timeouts = {{spec.layers[0], absl::Milliseconds(1)}};
  auto log = std::make_shared<StepLog>();
  const auto step =
      f.engine->Begin(std::move(spec), absl::InfiniteFuture(), log);
  ASSERT_TRUE(step.ok()) << step.status();
  f.clock.Advance(absl::Seconds(1));
  f.engine->ExpireSteps();
  EXPECT_FALSE(log->ended());
  (*step)->Cancel();
  EXPECT_TRUE(absl::IsCancelled(log->AwaitEnd()));
}

}  // namespace
}  // namespace engram
