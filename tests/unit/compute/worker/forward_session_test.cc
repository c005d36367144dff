#include "compute/worker/forward_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/wire/error_detail.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::EngineFixture;
using test::FakeRowSource;
using test::MakeSequence;
using test::Soon;
using test::Streams;
using test::WantedStreams;
using ::testing::HasSubstr;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr auto kAtOnce = FakeRowSource::Mode::kAtOnce;

class Session {
 public:
  explicit Session(EngineFixture& fixture) : Session(fixture, [](auto&) {}) {}
  Session(EngineFixture& fixture,
          const std::function<void(ForwardLimits&)>& change)
      : fixture_(fixture) {
    ForwardLimits limits = ForwardLimits::For(*fixture.engine);
    change(limits);
    session_ = ForwardSession::Create(fixture.engine.get(), limits, {}, [this] {
      MutexLock lock(&mutex_);
      ++wakes_;
      changed_.NotifyAll();
    });
  }
  // Steps call wake, so none may be left.
  ~Session() {
    session_->Cancel();
    Await([&] { return session_->idle(); });
    fixture_.engine = nullptr;
  }

  ForwardSession& operator*() { return *session_; }
  ForwardSession* operator->() { return session_.get(); }

  absl::Status Begin(uint64_t id, const std::vector<uint32_t>& tokens) {
    v1::ForwardRequest request;
    request.set_step_id(id);
    v1::StepBegin& begin = *request.mutable_begin();
    *begin.add_sequences() = MakeSequence(tokens);
    begin.set_dtype(v1::STREAM_DTYPE_BF16);
    begin.set_return_kind(v1::RETURN_KIND_STREAMS);
    return session_->Handle(std::move(request));
  }
  absl::Status Layer(uint64_t id, size_t layer_index, uint64_t first,
                     std::string streams) {
    v1::ForwardRequest request;
    request.set_step_id(id);
    request.mutable_layer()->set_layer_id(
        fixture_.block.config().layer_ids.at(layer_index));
    request.mutable_layer()->set_first_token(first);
    request.mutable_layer()->set_streams(std::move(streams));
    return session_->Handle(std::move(request));
  }
  absl::Status CancelStep(uint64_t id) {
    v1::ForwardRequest request;
    request.set_step_id(id);
    request.mutable_cancel();
    return session_->Handle(std::move(request));
  }

  v1::ForwardResponse AwaitReply() {
    v1::ForwardResponse reply;
    Await([&] { return session_->TakeReply(&reply); });
    session_->ReplySent();
    return reply;
  }
  // The next reply must be this step's end.
  absl::Status AwaitEnd(uint64_t id) {
    const v1::ForwardResponse reply = AwaitReply();
    EXPECT_EQ(reply.step_id(), id);
    EXPECT_EQ(reply.kind_case(), v1::ForwardResponse::kEnd);
    EXPECT_EQ(reply.end().version(), "v1");
    return FromRpcStatusProto(reply.end().status());
  }
  void Await(const std::function<bool()>& condition) {
    const absl::Time deadline = Soon();
    while (true) {
      int seen = 0;
      {
        MutexLock lock(&mutex_);
        seen = wakes_;
      }
      if (condition()) return;
      MutexLock lock(&mutex_);
      while (wakes_ == seen) {
        ENGRAM_CHECK(changed_.WaitUntil(&mutex_, deadline));
      }
    }
  }

 private:
  EngineFixture& fixture_;
  std::shared_ptr<ForwardSession> session_;
  Mutex mutex_;
  CondVar changed_;
  int wakes_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ForwardSessionTest, TellsTheTimesOfLayers) {
  EngineFixture f(kWhenTold);
  const absl::Time begun = f.clock.Now();
  Session session(f);
  v1::ForwardRequest request;
  request.set_step_id(1);
  v1::StepBegin& begin = *request.mutable_begin();
  *begin.add_sequences() = MakeSequence({1});
  begin.set_dtype(v1::STREAM_DTYPE_BF16);
  begin.set_return_kind(v1::RETURN_KIND_STREAMS);
  v1::LayerTimeout& timeout = *begin.add_layer_timeouts();
  timeout.set_layer_id(f.block.config().layer_ids[0]);
  timeout.set_timeout_us(1000);
  ASSERT_TRUE(session->Handle(request).ok());
  f.rows.AwaitFetches(2);
  EXPECT_EQ(f.rows.deadline(0), begun + absl::Milliseconds(1));
  EXPECT_GT(f.rows.deadline(1), begun + absl::Seconds(1));

  timeout.set_timeout_us(0);
  request.set_step_id(2);
  ASSERT_TRUE(session->Handle(request).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(session.AwaitEnd(2)));
  ASSERT_TRUE(session.CancelStep(1).ok());
  EXPECT_TRUE(absl::IsCancelled(session.AwaitEnd(1)));
}

TEST(ForwardSessionTest, AnswersEachChunkThenEnds) {
  EngineFixture f;
  Session session(f);
  const std::vector<uint32_t> tokens = {3, 4};
  const std::string streams = Streams(f.block, 2);
  const std::string half = streams.substr(0, streams.size() / 2);
  ASSERT_TRUE(session.Begin(7, tokens).ok());
  ASSERT_TRUE(session.Layer(7, 0, 0, streams).ok());
  v1::ForwardResponse reply = session.AwaitReply();
  EXPECT_EQ(reply.step_id(), 7);
  EXPECT_EQ(reply.result().token_count(), 2);
  EXPECT_EQ(reply.result().version(), "v1");
  EXPECT_EQ(reply.result().result().streams(),
            WantedStreams(f.block, 0, tokens, {}, streams));
  ASSERT_TRUE(session.Layer(7, 1, 1, streams.substr(streams.size() / 2)).ok());
  EXPECT_EQ(session.AwaitReply().result().first_token(), 1);
  ASSERT_TRUE(session.Layer(7, 1, 0, half).ok());
  EXPECT_EQ(session.AwaitReply().result().first_token(), 0);
  EXPECT_TRUE(session.AwaitEnd(7).ok());
  EXPECT_TRUE(session->idle());
}

TEST(ForwardSessionTest, AFailedStepLeavesTheOthersAlive) {
  EngineFixture f;
  Session session(f);
  const std::string streams = Streams(f.block, 1);
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Begin(2, {f.block.config().vocab_size}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(session.AwaitEnd(2)));
  // Streams that were sent before the failure was known.
  ASSERT_TRUE(session.Layer(2, 0, 0, streams).ok());
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  EXPECT_EQ(session.AwaitReply().step_id(), 1);
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  const absl::Status twice = session.AwaitEnd(1);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("token 0 came twice"));
  // An id may be used again once its step has ended.
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  EXPECT_EQ(session.AwaitReply().kind_case(), v1::ForwardResponse::kResult);
}

TEST(ForwardSessionTest, StepsCanBeCancelled) {
  EngineFixture f(kWhenTold);
  Session session(f);
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  f.rows.AwaitFetches(2);
  ASSERT_TRUE(session.CancelStep(1).ok());
  EXPECT_TRUE(absl::IsCancelled(session.AwaitEnd(1)));
  EXPECT_EQ(f.rows.cancelled(), 2);
  ASSERT_TRUE(session.CancelStep(1).ok());  // nothing to cancel, no error
  EXPECT_TRUE(session->idle());
}

TEST(ForwardSessionTest, StreamErrors) {
  EngineFixture f(kWhenTold);
  Session session(f);
  v1::ForwardRequest nothing;
  nothing.set_step_id(4);
  EXPECT_TRUE(absl::IsInvalidArgument(session->Handle(nothing)));
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  const absl::Status in_use = session.Begin(1, {5});
  EXPECT_TRUE(absl::IsInvalidArgument(in_use));
  EXPECT_THAT(std::string(in_use.message()), HasSubstr("step id 1 is in use"));
}

TEST(ForwardSessionTest, AStepThatNeverWasIsSaidOnce) {
  EngineFixture f;
  Session session(f);
  ASSERT_TRUE(session.Layer(9, 0, 0, Streams(f.block, 1)).ok());
  EXPECT_TRUE(absl::IsNotFound(session.AwaitEnd(9)));
  ASSERT_TRUE(session.Layer(9, 0, 0, Streams(f.block, 1)).ok());
  EXPECT_TRUE(session->idle());
}

// However often an id was used, late streams of its last step are no error.
TEST(ForwardSessionTest, AnIdThatIsUsedAgainStaysKnown) {
  EngineFixture f;
  Session session(f);
  constexpr uint64_t kMoreThanKept = 1025;
  const auto run = [&](uint64_t id) {
    ASSERT_TRUE(session.Begin(id, {5}).ok());
    ASSERT_TRUE(session.CancelStep(id).ok());
    EXPECT_TRUE(absl::IsCancelled(session.AwaitEnd(id)));
  };
  for (uint64_t i = 0; i < kMoreThanKept; ++i) run(7);
  ASSERT_TRUE(session.Layer(7, 0, 0, Streams(f.block, 1)).ok());
  EXPECT_TRUE(session->idle());
  for (uint64_t id = 10; id < 10 + kMoreThanKept - 2; ++id) run(id);
  run(7);
  run(8);
  ASSERT_TRUE(session.Layer(7, 0, 0, Streams(f.block, 1)).ok());
  EXPECT_TRUE(session->idle());
}

TEST(ForwardSessionTest, StepsInFlightAreLimited) {
  EngineFixture f(kWhenTold);
  Session session(f, [](auto& limits) { limits.max_steps_in_flight = 2; });
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Begin(2, {5}).ok());
  ASSERT_TRUE(session.Begin(3, {5}).ok());
  const absl::Status status = session.AwaitEnd(3);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(status).has_value());
  EXPECT_EQ(f.engine->steps_in_flight(), 2);
}

TEST(ForwardSessionTest, PrefetchedBytesAreLimited) {
  EngineFixture f(kWhenTold);
  const uint64_t token_bytes = f.block.hasher().columns() *
                               f.block.row_format().row_bytes() *
                               f.block.config().layer_ids.size();
  Session session(
      f, [&](auto& limits) { limits.max_prefetched_bytes = 3 * token_bytes; });
  ASSERT_TRUE(session.Begin(1, {5, 6}).ok());
  ASSERT_TRUE(session.Begin(2, {5, 6}).ok());
  EXPECT_EQ(ReasonOf(session.AwaitEnd(2)), ErrorReason::kOverloaded);
  ASSERT_TRUE(session.Begin(3, {5}).ok());
  ASSERT_TRUE(session.CancelStep(1).ok());
  EXPECT_TRUE(absl::IsCancelled(session.AwaitEnd(1)));
  ASSERT_TRUE(session.Begin(4, {5, 6}).ok());
  f.rows.AwaitFetches(6);
  EXPECT_EQ(f.engine->steps_in_flight(), 2);
}

TEST(ForwardSessionTest, ChunksAreLimited) {
  EngineFixture f;
  Session session(f, [](auto& limits) { limits.max_chunk_bytes = 100; });
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Layer(1, 0, 0, std::string(101, 'x')).ok());
  const absl::Status status = session.AwaitEnd(1);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge);
  EXPECT_EQ(MetadataOf(status, "value"), "101");
  EXPECT_EQ(MetadataOf(status, "limit"), "100");
}

TEST(ForwardSessionTest, ReadingPausesWhileTooMuchIsHeld) {
  EngineFixture f(kWhenTold);
  const std::string streams = Streams(f.block, 1);
  Session session(
      f, [&](auto& limits) { limits.max_held_bytes = streams.size(); });
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  f.rows.AwaitFetches(2);
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  EXPECT_FALSE(session->wants_pause());
  ASSERT_TRUE(session.Layer(1, 1, 0, streams).ok());
  EXPECT_TRUE(session->wants_pause());  // waits for rows
  f.rows.Complete(0);
  v1::ForwardResponse reply;
  session.Await([&] { return session->TakeReply(&reply); });
  EXPECT_TRUE(session->wants_pause());  // the reply has not left
  session->ReplySent();
  EXPECT_FALSE(session->wants_pause());
  f.rows.Complete(1);
  session.AwaitReply();
  EXPECT_TRUE(session.AwaitEnd(1).ok());
}

TEST(ForwardSessionTest, RepliesCountAgainstTheWorkersLimitUntilTheyLeave) {
  EngineFixture f;
  Session session(f);
  const std::string streams = Streams(f.block, 1);
  const auto held = [&] { return f.metrics.stream_bytes().Value(); };
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  ASSERT_TRUE(session.Layer(1, 1, 0, streams).ok());
  session.Await([&] { return f.engine->steps_in_flight() == 0; });
  EXPECT_EQ(held(), 2 * streams.size());
  v1::ForwardResponse reply;
  ASSERT_TRUE(session->TakeReply(&reply));
  EXPECT_EQ(held(), 2 * streams.size());
  session->ReplySent();
  EXPECT_EQ(held(), streams.size());
  session->Cancel();
  EXPECT_EQ(held(), 0);
}

TEST(ForwardSessionTest, ReadingPausesWhileManyRepliesWait) {
  EngineFixture f;
  Session session(f, [](auto& limits) { limits.max_queued_replies = 1; });
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(session.Layer(id, 0, 0, "x").ok());
  }
  EXPECT_TRUE(session->wants_pause());
  EXPECT_TRUE(absl::IsNotFound(session.AwaitEnd(1)));
  EXPECT_FALSE(session->wants_pause());
  EXPECT_TRUE(absl::IsNotFound(session.AwaitEnd(2)));
}

TEST(ForwardSessionTest, EndOfRequestsEndsIncompleteSteps) {
  EngineFixture f(kWhenTold);
  Session session(f);
  const std::string streams = Streams(f.block, 1);
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  f.rows.AwaitFetches(2);
  ASSERT_TRUE(session.Begin(2, {5}).ok());
  ASSERT_TRUE(session.Layer(1, 0, 0, streams).ok());
  ASSERT_TRUE(session.Layer(1, 1, 0, streams).ok());
  session->EndOfRequests();
  EXPECT_TRUE(absl::IsCancelled(session.AwaitEnd(2)));
  EXPECT_FALSE(session->idle());
  f.rows.Complete(0);
  f.rows.Complete(1);
  session.AwaitReply();
  session.AwaitReply();
  EXPECT_TRUE(session.AwaitEnd(1).ok());
  EXPECT_TRUE(session->idle());
}

TEST(ForwardSessionTest, CancelFreesEveryStep) {
  EngineFixture f(kWhenTold);
  Session session(f);
  ASSERT_TRUE(session.Begin(1, {5}).ok());
  ASSERT_TRUE(session.Begin(2, {5}).ok());
  f.rows.AwaitFetches(4);
  ASSERT_TRUE(session.Layer(1, 0, 0, Streams(f.block, 1)).ok());
  session->Cancel();
  session.Await([&] { return session->idle(); });
  EXPECT_EQ(f.engine->steps_in_flight(), 0);
  EXPECT_EQ(f.rows.open(), 0);
  EXPECT_EQ(f.metrics.stream_bytes().Value(), 0);
  ASSERT_TRUE(session.Begin(3, {5}).ok());  // nobody listens any more
  EXPECT_TRUE(session->idle());
}

TEST(ForwardSessionTest, TimeoutOfAStep) {
  EngineFixture f(kAtOnce);
  Session session(f);
  v1::ForwardRequest request;
  request.set_step_id(1);
  v1::StepBegin& begin = *request.mutable_begin();
  *begin.add_sequences() = MakeSequence({1});
  begin.set_dtype(v1::STREAM_DTYPE_BF16);
  begin.set_return_kind(v1::RETURN_KIND_STREAMS);
  begin.set_timeout_us(2000);
  begin.add_layer_ids(f.block.config().layer_ids[0]);
  ASSERT_TRUE(session->Handle(request).ok());
  f.clock.Advance(absl::Milliseconds(2));
  f.engine->ExpireSteps();
  EXPECT_TRUE(absl::IsDeadlineExceeded(session.AwaitEnd(1)));
}

}  // namespace
}  // namespace engram
