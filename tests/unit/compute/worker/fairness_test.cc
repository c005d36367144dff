// Callers that want more than their part, and others beside them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/testing/metric_values.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::EngineFixture;
using test::FakeRowSource;
using test::MakeSpec;
using test::Soon;
using test::StepLog;
using test::Streams;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr auto kAtOnce = FakeRowSource::Mode::kAtOnce;
const CallerId kGreedy{"ipv4:10.0.0.1:1"};
const CallerId kSmall{"ipv4:10.0.0.2:1"};

class FairnessTest : public ::testing::Test {
 protected:
  struct Begun {
    std::shared_ptr<StepLog> log = std::make_shared<StepLog>();
    std::shared_ptr<Step> step;
    absl::Status status;
  };

  Begun Begin(EngineFixture& f, const CallerId& caller, uint64_t tokens) {
    Begun begun;
    StepSpec spec = MakeSpec(f.block, std::vector<uint32_t>(tokens, 7));
    spec.caller = caller;
    auto step =
        f.engine->Begin(std::move(spec), absl::InfiniteFuture(), begun.log);
    begun.status = step.status();
    if (step.ok()) begun.step = *std::move(step);
    return begun;
  }
  // All streams of all layers.
  static void AddStreams(EngineFixture& f, Step& step) {
    for (size_t i = 0; i < f.block.layout().layers().size(); ++i) {
      AddLayer(f, step, i);
    }
  }
  static void AddLayer(EngineFixture& f, Step& step, size_t index) {
    auto owner = std::make_shared<const std::string>(
        Streams(f.block, step.request().tokens()));
    const absl::Span<const std::byte> view(
        reinterpret_cast<const std::byte*>(owner->data()), owner->size());
    step.AddChunk(f.block.layout().layers()[index].layer_id,
                  {.streams = view, .owner = std::move(owner)});
  }
  static double Refused(const EngineFixture& f, const std::string& bound,
                        const std::string& reason) {
    return test::MetricValues(f.registry)
        .at(absl::StrCat("engram_compute_refused_total{bound=", bound,
                         ",reason=", reason, ",}"));
  }
};

// One compute thread; the first run is held until everything is queued.
TEST_F(FairnessTest, ASmallStepIsComputedWhileAnothersBigOnesWait) {
  constexpr int kBigSteps = 200;
  constexpr uint64_t kBigTokens = 8;
  Notification computing;
  Notification go_on;
  std::vector<size_t> runs;  // tokens of each; written by the one thread
  EngineFixture f(kAtOnce);
  ThreadPool pool({.thread_count = 1});
  StepEngine::Options options = f.engine->options();
  options.compute_pool = &pool;
  options.max_tokens_per_run = 4;
  f.engine = std::make_unique<StepEngine>(options);
  f.engine->SetRowSource(&f.rows);
  f.block.OnForward([&](size_t tokens) {
    computing.Notify();
    go_on.WaitUntil(Soon());
    runs.push_back(tokens);
    return absl::OkStatus();
  });

  std::vector<Begun> big;
  for (int i = 0; i < kBigSteps; ++i) {
    big.push_back(Begin(f, kGreedy, kBigTokens));
    ASSERT_TRUE(big.back().status.ok()) << big.back().status;
    big.back().step->Start();
    AddStreams(f, *big.back().step);
  }
  ASSERT_TRUE(computing.WaitUntil(Soon()));
  const Begun small = Begin(f, kSmall, 1);
  ASSERT_TRUE(small.status.ok()) << small.status;
  EXPECT_EQ(f.metrics.callers().Value(), 2);
  small.step->Start();
  AddStreams(f, *small.step);
  // All but the run that is held, and as many as layers of the small step.
  ASSERT_TRUE(test::Eventually([&] {
    return f.metrics.queued_runs().Value() == 2 * kBigSteps - 1 + 2;
  }));
  ASSERT_EQ(f.block.forwards(), 1);

  go_on.Notify();
  EXPECT_TRUE(small.log->AwaitEnd().ok());
  for (Begun& step : big) EXPECT_TRUE(step.log->AwaitEnd().ok());
  f.engine = nullptr;
  EXPECT_EQ(runs.size(), 4 * kBigSteps + 2);
  // After the run that was held, one of each in turn.
  EXPECT_THAT(absl::MakeSpan(runs).first(5), ElementsAre(4, 4, 1, 4, 1));
}

TEST_F(FairnessTest, ASmallStepIsHashedWhileAnothersBigOnesWait) {
  constexpr size_t kBigSteps = 50;
  EngineFixture f(kWhenTold);
  Notification hashing;
  Notification go_on;
  f.engine->RunOnHashThread({"held"}, [&] {
    hashing.Notify();
    go_on.WaitUntil(Soon());
  });
  ASSERT_TRUE(hashing.WaitUntil(Soon()));
  std::vector<Begun> big;
  for (size_t i = 0; i < kBigSteps; ++i) {
    big.push_back(Begin(f, kGreedy, 8));
    ASSERT_TRUE(big.back().status.ok()) << big.back().status;
    big.back().step->Start();
  }
  const Begun small = Begin(f, kSmall, 1);
  small.step->Start();
  EXPECT_EQ(f.metrics.queued_hashes().Value(), kBigSteps + 1);
  go_on.Notify();
  f.rows.AwaitFetches(4);
  const size_t columns = f.block.hasher().columns();
  EXPECT_EQ(f.rows.row_ids(0).size(), 8 * columns);
  EXPECT_EQ(f.rows.row_ids(2).size(), columns);
  f.engine = nullptr;
}

TEST_F(FairnessTest, StepsInFlightAreDivided) {
  EngineFixture f(kWhenTold,
                  [](auto& options) { options.max_steps_in_flight = 16; });
  std::vector<Begun> greedy;
  while (greedy.empty() || greedy.back().status.ok()) {
    greedy.push_back(Begin(f, kGreedy, 1));
  }
  const absl::Status refused = greedy.back().status;
  EXPECT_EQ(greedy.size() - 1, 12);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded) << refused;
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(kGreedy.name));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("12 of at most 16 steps in flight"));
  EXPECT_EQ(Refused(f, "steps", "callers_share"), 1);
  EXPECT_EQ(Refused(f, "steps", "full"), 0);

  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Begin(f, kSmall, 1).status.ok()) << i;
  }
  // With two of them 12 are too many: one that ends is not followed by another.
  greedy[0].step->Cancel();
  EXPECT_TRUE(absl::IsCancelled(greedy[0].log->AwaitEnd()));
  EXPECT_FALSE(Begin(f, kGreedy, 1).status.ok());
  EXPECT_TRUE(Begin(f, {"third"}, 1).status.ok());
  f.engine = nullptr;
}

TEST_F(FairnessTest, FetchedRowsAreDivided) {
  EngineFixture f(kWhenTold, [](auto& options) {
    options.max_tokens_per_step = 4;
    options.max_prefetched_bytes = 1;  // raised to one step's
  });
  const Begun first = Begin(f, kGreedy, 2);
  ASSERT_TRUE(first.status.ok());
  const Begun second = Begin(f, kGreedy, 2);
  EXPECT_EQ(ReasonOf(second.status), ErrorReason::kOverloaded);
  EXPECT_EQ(Refused(f, "prefetched_bytes", "callers_share"), 1);
  EXPECT_EQ(f.engine->steps_in_flight(), 1);
  EXPECT_EQ(f.metrics.steps_in_flight().Value(), 1);
  // It fits; so it does for somebody else.
  EXPECT_TRUE(Begin(f, kSmall, 2).status.ok());
  f.engine = nullptr;
}

TEST_F(FairnessTest, OneCallersShareOfStreamsHoldsOneStep) {
  EngineFixture f(kWhenTold, [](auto& options) {
    options.max_tokens_per_step = 4;
    options.max_stream_bytes = 1;  // raised
  });
  auto log = std::make_shared<StepLog>();
  StepSpec spec = MakeSpec(f.block, {1, 2, 3, 4});
  spec.caller = kGreedy;
  spec.dtype = v1::STREAM_DTYPE_F32;
  const auto step =
      f.engine->Begin(std::move(spec), absl::InfiniteFuture(), log);
  ASSERT_TRUE(step.ok()) << step.status();
  (*step)->Start();
  const size_t token_bytes =
      TokenStreamBytes(f.block.config(), StreamDtype::kF32);
  for (const LayerLayout& layer : f.block.layout().layers()) {
    for (uint64_t token = 0; token < 4; ++token) {
      auto owner = std::make_shared<const std::string>(token_bytes, '\0');
      const absl::Span<const std::byte> view(
          reinterpret_cast<const std::byte*>(owner->data()), owner->size());
      (*step)->AddChunk(
          layer.layer_id,
          {.first_token = token, .streams = view, .owner = std::move(owner)});
    }
  }
  EXPECT_FALSE(log->ended());
  const auto more = f.engine->ReserveStreams(kGreedy, 1);
  EXPECT_EQ(ReasonOf(more.status()), ErrorReason::kOverloaded);
  EXPECT_EQ(Refused(f, "stream_bytes", "callers_share"), 1);
  EXPECT_TRUE(f.engine->ReserveStreams(kSmall, token_bytes).ok());
  f.rows.AwaitFetches(2);
  f.rows.Complete(0);
  f.rows.Complete(1);
  EXPECT_TRUE(log->AwaitEnd().ok());
  EXPECT_EQ(f.metrics.stream_bytes().Value(), 0);
}

}  // namespace
}  // namespace engram
