#include "compute/worker/step.h"

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
using test::WantedStreams;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr auto kAtOnce = FakeRowSource::Mode::kAtOnce;

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

}  // namespace
}  // namespace engram
