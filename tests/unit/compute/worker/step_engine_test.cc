#include "compute/worker/step_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
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

TEST(StepEngineTest, TakesNoStepsOnceTheBlockHasFailed) {
  EngineFixture f;
  EXPECT_EQ(f.metrics.ready().Value(), 1);
  StepUnderTest before(f, {1});
  f.block.SetHealth(absl::UnavailableError("cuda:0 failed: bad luck"));
  before.Add(0, 0, 1);
  // To be tried elsewhere.
  EXPECT_EQ(ReasonOf(before.log->AwaitEnd()), ErrorReason::kNotReady);
  EXPECT_FALSE(f.engine->ready());
  EXPECT_TRUE(absl::IsUnavailable(f.engine->ObserveBlock()));
  EXPECT_EQ(f.metrics.ready().Value(), 0);
  const absl::Status status =
      f.engine
          ->Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(),
                  std::make_shared<StepLog>())
          .status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNotReady) << status;
  EXPECT_EQ(MetadataOf(status, "worker"), "w0");
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:0 failed"));
}

TEST(StepEngineTest, TakesNoStepsWhileItsTablesAreLost) {
  EngineFixture f(kWhenTold);
  StepUnderTest before(f, {1});
  f.rows.AwaitFetches(2);
  f.engine->SetTables(absl::UnavailableError("3 partitions have no server"));
  EXPECT_FALSE(f.engine->ready());
  EXPECT_EQ(f.engine->ObserveBlock(), absl::OkStatus());
  EXPECT_EQ(f.metrics.ready().Value(), 0);
  const absl::Status status =
      f.engine
          ->Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(),
                  std::make_shared<StepLog>())
          .status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNotReady) << status;
  EXPECT_EQ(MetadataOf(status, "worker"), "w0");
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 partitions"));
  // What was begun goes on.
  f.rows.Complete(0);
  f.rows.Complete(1);
  before.Add(0, 0, 1);
  before.Add(1, 0, 1);
  EXPECT_TRUE(before.log->AwaitEnd().ok());
  f.engine->SetTables(absl::OkStatus());
  EXPECT_TRUE(f.engine->ready());
  StepUnderTest after(f, {1});
  after.step->Cancel();
  EXPECT_TRUE(absl::IsCancelled(after.log->AwaitEnd()));
}

TEST(StepEngineTest, RefusesWithReasons) {
  EngineFixture f;
  const auto log = std::make_shared<StepLog>();
  const auto begin = [&](StepSpec spec, absl::Time deadline) {
    return f.engine->Begin(std::move(spec), deadline, log).status();
  };
  StepSpec spec = MakeSpec(f.block, {1});
  spec.version = "v2";
  const absl::Status wrong = begin(spec, absl::InfiniteFuture());
  EXPECT_EQ(ReasonOf(wrong), ErrorReason::kWrongTable);
  EXPECT_EQ(MetadataOf(wrong, "asked"), "v2");
  EXPECT_EQ(MetadataOf(wrong, "served"), "v1");
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(begin(MakeSpec(f.block, {1}), f.clock.Now())));
  f.engine->Drain();
  EXPECT_EQ(ReasonOf(begin(MakeSpec(f.block, {1}), absl::InfiniteFuture())),
            ErrorReason::kDraining);
  EXPECT_EQ(f.engine->steps_in_flight(), 0);
}

TEST(StepEngineTest, NotReadyWithoutRows) {
  EngineFixture f;
  StepEngine engine(StepEngine::Options{f.engine->options()});
  const absl::Status status =
      engine
          .Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(),
                 std::make_shared<StepLog>())
          .status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNotReady) << status;
  EXPECT_EQ(MetadataOf(status, "worker"), "w0");
  EXPECT_FALSE(engine.ready());
}

TEST(StepEngineTest, StepsInFlightAreLimited) {
  EngineFixture f(kWhenTold,
                  [](auto& options) { options.max_steps_in_flight = 2; });
  StepUnderTest first(f, {1});
  StepSpec of_another = MakeSpec(f.block, {1});
  of_another.caller = {"another"};
  const auto second = f.engine->Begin(of_another, absl::InfiniteFuture(),
                                      std::make_shared<StepLog>());
  ASSERT_TRUE(second.ok()) << second.status();
  const auto third =
      f.engine->Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(),
                      std::make_shared<StepLog>());
  EXPECT_EQ(ReasonOf(third.status()), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(third.status()).has_value());
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("2 steps"));
  first.step->Cancel();
  EXPECT_TRUE(absl::IsCancelled(first.log->AwaitEnd()));
  StepUnderTest fourth(f, {1});
}

TEST(StepEngineTest, HeldBytesAreLimited) {
  EngineFixture f(kWhenTold, [](auto& options) {
    options.max_tokens_per_step = 4;
    options.max_prefetched_bytes = 1;  // raised to one step's
    options.max_stream_bytes = 1;
  });
  StepUnderTest first(f, {1, 2, 3, 4});
  const auto second =
      f.engine->Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(),
                      std::make_shared<StepLog>());
  EXPECT_EQ(ReasonOf(second.status()), ErrorReason::kOverloaded);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("rows"));
  first.Add(0, 0, 4);
  first.Add(1, 0, 4);
  f.rows.AwaitFetches(2);
  f.rows.Complete(0);
  f.rows.Complete(1);
  EXPECT_TRUE(first.log->AwaitEnd().ok());
  ExpectNothingHeld(f);
}

TEST(StepEngineTest, DestructionEndsStepsInFlight) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1});
  f.rows.AwaitFetches(2);
  f.engine = nullptr;
  EXPECT_TRUE(absl::IsCancelled(t.log->AwaitEnd()));
  EXPECT_EQ(f.rows.open(), 0);
}

TEST(StepEngineTest, ManyStepsAtOnce) {
  EngineFixture f;
  std::vector<std::unique_ptr<StepUnderTest>> steps;
  for (uint32_t i = 0; i < 50; ++i) {
    steps.push_back(std::make_unique<StepUnderTest>(
        f, std::vector<uint32_t>{i, i + 1, i + 2}));
  }
  for (auto& t : steps) {
    for (uint64_t token = 0; token < 3; ++token) {
      t->Add(1, token, 1);
      t->Add(0, token, 1);
    }
    if (t == steps.back()) t->step->Cancel();
  }
  for (auto& t : steps) {
    if (t == steps.back()) continue;
    EXPECT_TRUE(t->log->AwaitEnd().ok());
    EXPECT_EQ(t->log->AwaitResults(6).size(), 6);
  }
  EXPECT_TRUE(absl::IsCancelled(steps.back()->log->AwaitEnd()));
  ExpectNothingHeld(f);
}

}  // namespace
}  // namespace engram
