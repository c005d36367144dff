#include "compute/worker/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::EngineFixture;
using test::FakeRowSource;
using test::MakeSpec;
using test::Soon;
using test::StepLog;
using test::Streams;
using test::WantedStreams;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr auto kAtOnce = FakeRowSource::Mode::kAtOnce;

// One step over an EngineFixture.
struct StepUnderTest {
  StepUnderTest(EngineFixture& fixture, const std::vector<uint32_t>& tokens,
                const std::vector<bool>& mask = {})
      : fixture(fixture),
        streams(Streams(fixture.block, tokens.size())),
        token_bytes(streams.size() / tokens.size()) {
    auto begun = fixture.engine->Begin(MakeSpec(fixture.block, tokens, mask),
                                       absl::InfiniteFuture(), log);
    EXPECT_TRUE(begun.ok()) << begun.status();
    step = *std::move(begun);
    step->Start();
  }

  void Add(size_t layer_index, uint64_t first, uint64_t count) {
    step->AddChunk(Layer(layer_index), ChunkOf(first, count));
  }
  StepChunk ChunkOf(uint64_t first, uint64_t count) const {
    auto owner = std::make_shared<const std::string>(
        streams.substr(first * token_bytes, count * token_bytes));
    const absl::Span<const std::byte> view(
        reinterpret_cast<const std::byte*>(owner->data()), owner->size());
    return {.first_token = first, .streams = view, .owner = std::move(owner)};
  }
  LayerId Layer(size_t index) const {
    return fixture.block.layout().layers()[index].layer_id;
  }

  EngineFixture& fixture;
  std::string streams;
  size_t token_bytes;
  std::shared_ptr<StepLog> log = std::make_shared<StepLog>();
  std::shared_ptr<Step> step;
};

void ExpectNothingHeld(const EngineFixture& f) {
  EXPECT_EQ(f.engine->steps_in_flight(), 0);
  EXPECT_EQ(f.rows.open(), 0);
  auto& metrics = const_cast<WorkerMetrics&>(f.metrics);
  EXPECT_EQ(metrics.steps_in_flight().Value(), 0);
  EXPECT_EQ(metrics.prefetched_bytes().Value(), 0);
  EXPECT_EQ(metrics.stream_bytes().Value(), 0);
}

TEST(StepTest, AllLayersAreFetchedBeforeTheFirstOnesRowsCome) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1, 2, 3});
  f.rows.AwaitFetches(2);
  EXPECT_EQ(f.rows.layer(0), t.Layer(0));
  EXPECT_EQ(f.rows.layer(1), t.Layer(1));
  EXPECT_EQ(f.rows.open(), 2);

  t.Add(0, 0, 3);
  t.Add(1, 0, 3);
  // Layers do not wait for each other.
  f.rows.Complete(1);
  EXPECT_EQ(t.log->AwaitResults(1)[0].result.layer_id(), ToInt(t.Layer(1)));
  f.rows.Complete(0);
  EXPECT_EQ(t.log->AwaitResults(1)[0].result.layer_id(), ToInt(t.Layer(0)));
  EXPECT_TRUE(t.log->AwaitEnd().ok());
  ExpectNothingHeld(f);
}

TEST(StepTest, ChunksInAnyOrderGiveTheStreamsOfOneChunk) {
  EngineFixture f(kAtOnce,
                  [](auto& options) { options.max_tokens_per_run = 2; });
  const std::vector<uint32_t> tokens = {5, 6, 7, 8, 9, 10, 11};
  StepUnderTest t(f, tokens);
  t.Add(1, 4, 3);
  t.Add(0, 6, 1);
  t.Add(1, 0, 4);
  t.Add(0, 0, 5);
  t.Add(0, 5, 1);
  ASSERT_TRUE(t.log->AwaitEnd().ok());
  std::vector<std::string> out(2, std::string(t.streams.size(), '\0'));
  for (const StepChunkResult& r : t.log->AwaitResults(5)) {
    const size_t layer = r.result.layer_id() == ToInt(t.Layer(0)) ? 0 : 1;
    EXPECT_EQ(r.result.streams().size(), r.token_count * t.token_bytes);
    EXPECT_EQ(r.input_bytes, r.result.streams().size());
    out[layer].replace(r.first_token * t.token_bytes, r.result.streams().size(),
                       r.result.streams());
  }
  EXPECT_EQ(out[0], WantedStreams(f.block, 0, tokens, {}, t.streams));
  EXPECT_EQ(out[1], WantedStreams(f.block, 1, tokens, {}, t.streams));
  ExpectNothingHeld(f);
}

TEST(StepTest, RowsOfDeadTokensAreNotFetched) {
  EngineFixture f(kAtOnce,
                  [](auto& options) { options.max_tokens_per_run = 2; });
  const std::vector<uint32_t> tokens = {5, 6, 7, 8, 9};
  const std::vector<bool> mask = {false, true, false, true, true};
  StepUnderTest t(f, tokens, mask);
  f.rows.AwaitFetches(2);
  EXPECT_EQ(f.rows.row_ids(0).size(), 3 * f.block.hasher().columns());
  t.Add(0, 0, 5);
  t.Add(1, 3, 2);
  t.Add(1, 0, 3);
  ASSERT_TRUE(t.log->AwaitEnd().ok());
  for (const StepChunkResult& r : t.log->AwaitResults(3)) {
    const size_t layer = r.result.layer_id() == ToInt(t.Layer(0)) ? 0 : 1;
    EXPECT_EQ(r.result.streams(),
              WantedStreams(f.block, layer, tokens, mask, t.streams)
                  .substr(r.first_token * t.token_bytes,
                          r.token_count * t.token_bytes));
  }
}

TEST(StepTest, AStepOfDeadTokensFetchesNothing) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1, 2}, {false, false});
  t.Add(0, 0, 2);
  t.Add(1, 0, 2);
  EXPECT_TRUE(t.log->AwaitEnd().ok());
  for (const StepChunkResult& r : t.log->AwaitResults(2)) {
    EXPECT_EQ(r.result.streams(), t.streams);
  }
  EXPECT_EQ(f.rows.started(), 0);
}

TEST(StepTest, ContributionIsGateAndValue) {
  EngineFixture f(kAtOnce,
                  [](auto& options) { options.max_tokens_per_run = 1; });
  StepSpec spec = MakeSpec(f.block, {1, 2}, {true, false});
  spec.return_kind = v1::RETURN_KIND_CONTRIBUTION;
  spec.dtype = v1::STREAM_DTYPE_F32;
  spec.layers.resize(1);
  auto log = std::make_shared<StepLog>();
  const auto step =
      f.engine->Begin(std::move(spec), absl::InfiniteFuture(), log);
  ASSERT_TRUE(step.ok()) << step.status();
  (*step)->Start();
  const std::string streams = Streams(f.block, 2, StreamDtype::kF32);
  (*step)->AddChunk(
      f.block.layout().layers()[0].layer_id,
      {.streams = {reinterpret_cast<const std::byte*>(streams.data()),
                   streams.size()}});
  ASSERT_TRUE(log->AwaitEnd().ok());
  const auto results = log->AwaitResults(1);
  const v1::LayerResult& result = results[0].result;
  EXPECT_THAT(result.streams(), IsEmpty());
  ASSERT_EQ(result.gate().size(), 2 * f.block.config().hc_mult * 4);
  ASSERT_EQ(result.value().size(), 2 * f.block.config().dim * 2);
  EXPECT_NE(result.gate().substr(0, 4), std::string(4, '\0'));
  EXPECT_EQ(result.gate().substr(result.gate().size() / 2),
            std::string(result.gate().size() / 2, '\0'));
  EXPECT_EQ(result.value().substr(result.value().size() / 2),
            std::string(result.value().size() / 2, '\0'));
}

TEST(StepTest, BadChunksEndTheStep) {
  struct Case {
    std::function<void(StepUnderTest&)> add;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto& t) { t.Add(0, 0, 2), t.Add(0, 1, 1); },
       "streams of token 1 came twice"},
      {[](auto& t) { t.Add(0, 2, 1), t.Add(0, 0, 3); },
       "streams of token 2 came twice"},
      {[](auto& t) {
         StepChunk chunk = t.ChunkOf(0, 2);
         chunk.first_token = 2;
         t.step->AddChunk(t.Layer(0), chunk);
       },
       "2 tokens from token 2 on, in a step of 3 tokens"},
      {[](auto& t) {
         StepChunk chunk = t.ChunkOf(0, 1);
         chunk.first_token = ~uint64_t{0};
         t.step->AddChunk(t.Layer(0), chunk);
       },
       "in a step of 3 tokens"},
      {[](auto& t) {
         StepChunk chunk = t.ChunkOf(0, 1);
         chunk.streams.remove_suffix(1);
         t.step->AddChunk(t.Layer(0), chunk);
       },
       "no whole number of tokens"},
      {[](auto& t) { t.step->AddChunk(t.Layer(0), {}); }, "0 bytes of streams"},
      {[](auto& t) { t.step->AddChunk(LayerId{999}, t.ChunkOf(0, 1)); },
       "layer 999"},
  };
  for (const Case& c : cases) {
    EngineFixture f(kWhenTold);
    StepUnderTest t(f, {1, 2, 3});
    f.rows.AwaitFetches(2);
    c.add(t);
    const absl::Status status = t.log->AwaitEnd();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_EQ(f.rows.cancelled(), 2);
    ExpectNothingHeld(f);
  }
}

TEST(StepTest, CancelFreesEverything) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1, 2, 3});
  f.rows.AwaitFetches(2);
  t.Add(0, 0, 3);
  EXPECT_GT(f.metrics.stream_bytes().Value(), 0);
  EXPECT_GT(f.metrics.prefetched_bytes().Value(), 0);
  t.step->Cancel();
  EXPECT_TRUE(absl::IsCancelled(t.log->AwaitEnd()));
  EXPECT_EQ(f.rows.cancelled(), 2);
  EXPECT_EQ(f.block.forwards(), 0);
  ExpectNothingHeld(f);
  t.Add(1, 0, 3);  // too late for anything, and no harm
  t.step->Cancel();
  ExpectNothingHeld(f);
}

TEST(StepTest, ACancelledStepIsNotHashed) {
  EngineFixture f(kWhenTold);
  auto log = std::make_shared<StepLog>();
  const auto step =
      f.engine->Begin(MakeSpec(f.block, {1}), absl::InfiniteFuture(), log);
  ASSERT_TRUE(step.ok());
  (*step)->Cancel();
  (*step)->Start();
  EXPECT_TRUE(absl::IsCancelled(log->AwaitEnd()));
  EXPECT_EQ(f.rows.started(), 0);
}

TEST(StepTest, CancelWhileComputingComputesNoFurtherRun) {
  EngineFixture f(kAtOnce,
                  [](auto& options) { options.max_tokens_per_run = 1; });
  Notification computing;
  Notification go_on;
  f.block.OnForward([&](size_t tokens) {
    EXPECT_EQ(tokens, 1);
    computing.Notify();
    go_on.WaitUntil(Soon());
    return absl::OkStatus();
  });
  StepUnderTest t(f, {1, 2, 3});
  t.Add(0, 0, 3);
  ASSERT_TRUE(computing.WaitUntil(Soon()));
  t.step->Cancel();
  EXPECT_FALSE(t.log->ended());  // the run still reads the streams
  go_on.Notify();
  EXPECT_TRUE(absl::IsCancelled(t.log->AwaitEnd()));
  EXPECT_EQ(f.block.forwards(), 1);
  EXPECT_THAT(t.log->AwaitResults(0), IsEmpty());
  ExpectNothingHeld(f);
}

TEST(StepTest, UnclaimedStepsExpire) {
  EngineFixture f(
      kAtOnce, [](auto& options) { options.step_timeout = absl::Seconds(5); });
  StepUnderTest t(f, {1, 2, 3});
  t.Add(0, 0, 2);
  t.log->AwaitResults(1);
  f.engine->ExpireSteps();
  EXPECT_FALSE(t.log->ended());
  f.clock.Advance(absl::Seconds(5));
  f.engine->ExpireSteps();
  const absl::Status status = t.log->AwaitEnd();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 5s"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 of 3 tokens"));
  ExpectNothingHeld(f);
}

// ---- times of layers ----

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

double LateRows(EngineFixture& f, LayerId layer) {
  for (const prometheus::MetricFamily& family : f.registry.Collect()) {
    if (family.name != "engram_compute_late_rows_total") continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      if (metric.label[0].value == std::to_string(ToInt(layer))) {
        return metric.counter.value;
      }
    }
  }
  return 0;
}

TEST(StepTest, EachLayersFetchHasItsOwnDeadline) {
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

TEST(StepTest, RowsThatAreLateForTheirLayerEndTheStep) {
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

TEST(StepTest, ALayersTimeIsOverAlsoBeforeItsFetchKnows) {
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

TEST(StepTest, AStepIsNotFetchedThatIsLateAlready) {
  EngineFixture f(kWhenTold);
  TimedStep timed(f);
  f.clock.Advance(absl::Milliseconds(2));
  timed.step->Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(timed.log->AwaitEnd()));
  EXPECT_EQ(f.rows.started(), 0);
}

TEST(StepTest, RowsInTimeMayWaitForTheirStreams) {
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

TEST(StepTest, DeadTokensHaveNoRowsToBeLate) {
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

TEST(StepTest, AnExpiredStepComputesNothing) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1});
  f.rows.AwaitFetches(2);
  t.Add(0, 0, 1);
  f.clock.Advance(absl::Hours(1));
  f.rows.Complete(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(t.log->AwaitEnd()));
  EXPECT_EQ(f.block.forwards(), 0);
  ExpectNothingHeld(f);
}

TEST(StepTest, AFailedFetchEndsTheStepAndCancelsTheOther) {
  EngineFixture f(kWhenTold);
  StepUnderTest t(f, {1});
  f.rows.AwaitFetches(2);
  f.rows.Complete(1, absl::UnavailableError("server t3 is down"));
  const absl::Status status = t.log->AwaitEnd();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("t3"));
  EXPECT_EQ(f.rows.cancelled(), 1);
  ExpectNothingHeld(f);
}

TEST(StepTest, AFailedComputationEndsTheStep) {
  EngineFixture f(kAtOnce);
  f.block.OnForward([](size_t) { return absl::InternalError("no luck"); });
  StepUnderTest t(f, {1});
  t.Add(0, 0, 1);
  EXPECT_EQ(t.log->AwaitEnd(), absl::InternalError("no luck"));
  ExpectNothingHeld(f);
}

TEST(StepTest, EndOfChunksEndsOnlyAnIncompleteStep) {
  EngineFixture f(kWhenTold);
  StepUnderTest complete(f, {1});
  f.rows.AwaitFetches(2);
  complete.Add(0, 0, 1);
  complete.Add(1, 0, 1);
  StepUnderTest incomplete(f, {1});
  f.rows.AwaitFetches(4);
  incomplete.Add(0, 0, 1);
  f.rows.Complete(2);
  incomplete.log->AwaitResults(1);
  incomplete.step->EndOfChunks();
  complete.step->EndOfChunks();  // its rows are still being fetched
  EXPECT_TRUE(absl::IsCancelled(incomplete.log->AwaitEnd()));
  f.rows.Complete(0);
  f.rows.Complete(1);
  EXPECT_TRUE(complete.log->AwaitEnd().ok());
}

TEST(StepTest, RowsComeFromTheBlocksMemory) {
  EngineFixture f(kWhenTold);
  const size_t bytes =
      f.block.hasher().columns() * f.block.row_format().row_bytes();
  ASSERT_LE(2 * bytes, test::FakeBlock::kPoolBytes);
  StepUnderTest t(f, {1});
  f.rows.AwaitFetches(2);
  EXPECT_EQ(f.engine->ObserveBlock(), absl::OkStatus());
  EXPECT_GE(f.metrics.pinned_rows_bytes().Value(), 2 * bytes);
  EXPECT_EQ(f.block.use().rows.fallbacks, 0);
  t.step->Cancel();
  EXPECT_TRUE(absl::IsCancelled(t.log->AwaitEnd()));
  EXPECT_EQ(f.engine->ObserveBlock(), absl::OkStatus());
  EXPECT_EQ(f.metrics.pinned_rows_bytes().Value(), 0);
}

TEST(StepTest, RowsThatDoNotFitTheBlocksMemoryAreComputedToo) {
  EngineFixture f(kAtOnce);
  const size_t bytes =
      f.block.hasher().columns() * f.block.row_format().row_bytes();
  const std::vector<uint32_t> tokens(test::FakeBlock::kPoolBytes / bytes + 1,
                                     7);
  StepUnderTest t(f, tokens);
  t.Add(0, 0, tokens.size());
  t.Add(1, 0, tokens.size());
  EXPECT_EQ(t.log->AwaitEnd(), absl::OkStatus());
  EXPECT_EQ(f.block.use().rows.fallbacks, 2);
  for (int i = 0; i < 2; ++i) {  // the second time nothing is new
    EXPECT_EQ(f.engine->ObserveBlock(), absl::OkStatus());
    EXPECT_EQ(f.metrics.unpinned_rows().Value(), 2);
  }
}

TEST(StepTest, ABlockWithoutRoomIsOverloaded) {
  EngineFixture f(kAtOnce);
  f.block.OnForward([](size_t) {
    return absl::ResourceExhaustedError("all 4 slots stayed in use");
  });
  StepUnderTest t(f, {1});
  t.Add(0, 0, 1);
  const absl::Status status = t.log->AwaitEnd();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("all 4 slots"));
}

// ---- the engine ----

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
