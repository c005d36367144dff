#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <thread>

#include "core/wire/gather_crc.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

// What came of one gather of a stream.
struct Answer {
  std::string rows;
  std::vector<size_t> piece_bytes;
  bool ended = false;
  absl::Status status;
  std::string version;
  uint32_t crc32c = 0;
};

class GatherStreamTest : public test::ServiceFixture {
 protected:
  void Open() {
    context_ = std::make_unique<grpc::ClientContext>();
    SetDeadline(*context_);
    stream_ = stub_->GatherStream(context_.get());
  }
  void Ask(uint64_t call_id, v1::GatherRequest gather,
           uint64_t timeout_us = 0) {
    v1::GatherStreamRequest request;
    request.set_call_id(call_id);
    *request.mutable_gather() = std::move(gather);
    request.set_timeout_us(timeout_us);
    ASSERT_TRUE(stream_->Write(request));
  }
  void Cancel(uint64_t call_id) {
    v1::GatherStreamRequest request;
    request.set_call_id(call_id);
    request.mutable_cancel();
    ASSERT_TRUE(stream_->Write(request));
  }
  // Reads one message into answers_; false at the end of the stream.
  bool ReadOne() {
    v1::GatherStreamResponse response;
    if (!stream_->Read(&response)) return false;
    Answer& answer = answers_[response.call_id()];
    EXPECT_FALSE(answer.ended) << "more than one end of " << response.call_id();
    if (response.has_error()) {
      answer.ended = true;
      answer.status = FromRpcStatusProto(response.error());
      return true;
    }
    const v1::GatherStreamResponse::Piece& piece = response.piece();
    answer.rows += piece.rows();
    answer.piece_bytes.push_back(piece.rows().size());
    if (piece.last()) {
      answer.ended = true;
      answer.version = piece.version();
      answer.crc32c = piece.crc32c();
    }
    return true;
  }
  const Answer& Await(uint64_t call_id) {
    while (!answers_[call_id].ended && ReadOne()) {
    }
    return answers_[call_id];
  }
  absl::Status Finish() {
    while (ReadOne()) {
    }
    return FromGrpcStatus(stream_->Finish());
  }
  absl::Status CloseAndFinish() {
    stream_->WritesDone();
    return Finish();
  }
  std::vector<RowId> ManyIds(size_t count) const {
    std::vector<RowId> ids(count);
    for (size_t i = 0; i < count; ++i) {
      ids[i] = static_cast<RowId>(i * 7919 % manifest_.layers()[0].row_count);
    }
    return ids;
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::GatherStreamRequest,
                                           v1::GatherStreamResponse>>
      stream_;
  std::map<uint64_t, Answer> answers_;
};

TEST_F(GatherStreamTest, ALargeGatherComesInPieces) {
  Start();
  Open();
  const std::vector<RowId> ids = ManyIds(20000);
  v1::GatherRequest request = Request(0, ids);
  request.set_want_crc32c(true);
  Ask(5, request);
  const Answer& answer = Await(5);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.rows, Rows(0, ids));
  EXPECT_EQ(answer.version, manifest_.version());
  GatherCrc crc(manifest_.version());
  crc.AddLayer(layer(0), ids);
  crc.AddRows({reinterpret_cast<const std::byte*>(answer.rows.data()),
               answer.rows.size()});
  EXPECT_EQ(answer.crc32c, crc.value());
  ASSERT_GT(answer.piece_bytes.size(), 1U);
  for (const size_t bytes : answer.piece_bytes) {
    EXPECT_LE(bytes, size_t{256} << 10);
    EXPECT_EQ(bytes % manifest_.row_format().row_bytes(), 0U);
  }
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, ManyGathersInFlight) {
  Start({.piece_bytes = 1000});
  Open();
  std::map<uint64_t, std::vector<RowId>> asked;
  for (uint64_t id = 0; id < 40; ++id) {
    asked[id] = ManyIds(id * 13);
    Ask(id, Request(id % 2, asked[id]));
  }
  for (const auto& [id, ids] : asked) {
    const Answer& answer = Await(id);
    ASSERT_THAT(answer.status, IsOk());
    EXPECT_EQ(answer.rows, Rows(id % 2, ids));
  }
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, WhatIsInFlightIsAnsweredAfterTheCallerClosed) {
  Start({.piece_bytes = 1000});
  Open();
  const std::vector<RowId> ids = ManyIds(5000);
  Ask(1, Request(0, ids));
  EXPECT_THAT(CloseAndFinish(), IsOk());
  EXPECT_TRUE(answers_[1].ended);
  EXPECT_EQ(answers_[1].rows, Rows(0, ids));
}

TEST_F(GatherStreamTest, AFailedGatherLeavesTheStreamAlive) {
  Start();
  Open();
  v1::GatherRequest wrong = Request(0, {1});
  wrong.set_version("other");
  Ask(1, wrong);
  Ask(2, Request(0, {0xFFFFFFFF}));
  Ask(3, Request(0, std::vector<RowId>(65537, 1)));
  Ask(4, Request(0, {1}));
  EXPECT_EQ(ReasonOf(Await(1).status), ErrorReason::kWrongTable);
  EXPECT_EQ(ReasonOf(Await(2).status), ErrorReason::kRowOutOfRange);
  EXPECT_EQ(ReasonOf(Await(3).status), ErrorReason::kTooLarge);
  EXPECT_EQ(Await(4).rows, Rows(0, {1}));
  // Its id is free again.
  answers_.clear();
  Ask(1, Request(0, {2}));
  EXPECT_EQ(Await(1).rows, Rows(0, {2}));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, CancelEndsOneGather) {
  Start({.piece_bytes = 1000}, &gated_tier_);
  Open();
  Ask(1, Request(0, ManyIds(5000)));
  gated_tier_.WaitForCopy();
  Cancel(1);
  Cancel(77);  // unknown: nothing happens
  EXPECT_THAT(Await(1).status,
              IsError(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  gated_tier_.Open();
  Ask(2, Request(0, {3}));
  EXPECT_EQ(Await(2).rows, Rows(0, {3}));
  EXPECT_EQ(answers_[1].rows, "");
  EXPECT_EQ(gated_tier_.copies(), 2);  // one of each
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, AGatherHasATimeoutOfItsOwn) {
  Start({}, &gated_tier_);
  Open();
  Ask(1, Request(0, {1}));
  gated_tier_.WaitForCopy();
  Ask(2, Request(0, {2}), /*timeout_us=*/1);
  // Answered only after the second was read, for the messages are in order.
  Ask(3, v1::GatherRequest(), 0);
  Cancel(3);
  EXPECT_EQ(Await(3).status.code(), absl::StatusCode::kCancelled);
  clock_.Advance(absl::Microseconds(1));
  gated_tier_.Open();
  EXPECT_EQ(Await(1).rows, Rows(0, {1}));
  EXPECT_EQ(Await(2).status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(gated_tier_.copies(), 1);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, GathersInFlightAreBounded) {
  Start({.max_gathers_in_flight_per_stream = 2}, &gated_tier_);
  Open();
  for (uint64_t id = 1; id <= 3; ++id) Ask(id, Request(0, {1}));
  const absl::Status status = Await(3).status;
  EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(status).has_value());
  gated_tier_.Open();
  EXPECT_THAT(Await(1).status, IsOk());
  EXPECT_THAT(Await(2).status, IsOk());
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, ACallIdInUseEndsTheStream) {
  Start({.piece_bytes = 1000});
  Open();
  // More than the connection takes while nobody reads: still in flight when
  // its id comes again.
  Ask(1, Request(0, ManyIds(65536)));
  Ask(1, Request(0, {1}));
  EXPECT_THAT(Finish(), IsError(absl::StatusCode::kInvalidArgument,
                                HasSubstr("call id 1")));
}

TEST_F(GatherStreamTest, AMessageWithoutAKindEndsTheStream) {
  Start();
  Open();
  ASSERT_TRUE(stream_->Write(v1::GatherStreamRequest()));
  EXPECT_THAT(Finish(), IsError(absl::StatusCode::kInvalidArgument,
                                HasSubstr("neither")));
}

TEST_F(GatherStreamTest, DrainEndsGathersThenStreams) {
  Start({.piece_bytes = 1000}, &gated_tier_);
  Open();
  const std::vector<RowId> ids = ManyIds(1000);
  Ask(1, Request(0, ids));
  gated_tier_.WaitForCopy();
  service_->StopAccepting();
  gated_tier_.Open();
  EXPECT_EQ(ReasonOf(Finish()), ErrorReason::kDraining);
  EXPECT_TRUE(answers_[1].ended);
  EXPECT_EQ(answers_[1].rows, Rows(0, ids));
  Open();
  EXPECT_EQ(ReasonOf(Finish()), ErrorReason::kDraining);
}

TEST_F(GatherStreamTest, StreamsAreBounded) {
  Start({.max_streams = 1});
  Open();
  Ask(1, Request(0, {1}));
  EXPECT_THAT(Await(1).status, IsOk());
  grpc::ClientContext other;
  SetDeadline(other);
  const auto refused = stub_->GatherStream(&other);
  v1::GatherStreamResponse response;
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(refused->Finish())),
            ErrorReason::kOverloaded);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

// A caller that asks and asks and reads nothing: the server holds a few pieces
// of its answers, not the answers.
TEST_F(GatherStreamTest, ASlowReaderHoldsNoMoreThanItsQueue) {
  Start();
  Open();
  const std::vector<RowId> ids = ManyIds(65536);
  const uint64_t whole = 64 * 65536 * manifest_.row_format().row_bytes();
  for (uint64_t id = 0; id < 64; ++id) Ask(id, Request(0, ids));
  // The admission knows of all: their ids and a piece each.
  uint64_t held = 0;
  for (uint64_t id = 0; id < 4; ++id) {
    Await(id);
    service_->UpdateGauges();
    held = std::max<uint64_t>(
        held,
        static_cast<uint64_t>(metrics_.gauges().bytes_in_flight->Value()));
  }
  EXPECT_GT(held, 0U);
  EXPECT_LT(held, whole / 2);
  EXPECT_EQ(answers_[0].rows, Rows(0, ids));
  context_->TryCancel();
  EXPECT_EQ(Finish().code(), absl::StatusCode::kCancelled);
}

// Streams that come, ask and vanish, from several threads at once.
TEST_F(GatherStreamTest, VanishingCallersLeaveNothingBehind) {
  Start({.piece_bytes = 1000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 25; ++round) {
        grpc::ClientContext context;
        SetDeadline(context);
        const auto stream = stub_->GatherStream(&context);
        v1::GatherStreamRequest request;
        for (uint64_t id = 0; id < 5; ++id) {
          request.set_call_id(id);
          *request.mutable_gather() = Request(0, ManyIds(2000));
          stream->Write(request);
        }
        v1::GatherStreamResponse response;
        for (int i = 0; i < round % 5; ++i) stream->Read(&response);
        if ((t + round) % 2 == 0) context.TryCancel();
        stream->WritesDone();
        while (stream->Read(&response)) {
        }
        stream->Finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  server_->Shutdown(absl::Now() + absl::Seconds(30));
  service_->UpdateGauges();
  EXPECT_EQ(metrics_.gauges().streams->Value(), 0);
  service_.reset();  // joins the workers, who may hold the last references
}

}  // namespace
}  // namespace engram
