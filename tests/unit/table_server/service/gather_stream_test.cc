#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <thread>

#include "core/base/notification.h"
#include "core/wire/gather_crc.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/gather_stream_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

using GatherStreamTest = test::GatherStreamFixture;

TEST_F(GatherStreamTest, ALargeGatherComesInPieces) {
  Start();
  Open();
  const std::vector<RowId> ids = ManyIds(20000);
  v1::GatherRequest request = Request(0, ids);
  request.set_want_crc32c(true);
  Ask(5, request);
  const test::StreamAnswer& answer = Await(5);
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
    const test::StreamAnswer& answer = Await(id);
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

// The worker is busy, so that nobody comes to the gather whose time is over.
TEST_F(GatherStreamTest, AQueuedGatherEndsWhenItsTimeIsOver) {
  Start({}, &gated_tier_, /*worker_threads=*/1);
  Open();
  Ask(1, Request(0, {1}));
  gated_tier_.WaitForCopy();
  Ask(2, Request(0, {2}), /*timeout_us=*/1);
  // Answered only after the second was read, for the messages are in order.
  Ask(3, v1::GatherRequest(), 0);
  Cancel(3);
  EXPECT_EQ(Await(3).status.code(), absl::StatusCode::kCancelled);
  clock_.Advance(absl::Microseconds(1));
  EXPECT_EQ(Await(2).status.code(), absl::StatusCode::kDeadlineExceeded);
  service_->UpdateGauges();
  EXPECT_EQ(metrics_.gauges().gathers_in_flight->Value(), 1);
  gated_tier_.Open();
  EXPECT_EQ(Await(1).rows, Rows(0, {1}));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, AdmissionKnowsAllThatARequestHolds) {
  Start({}, &gated_tier_, /*worker_threads=*/1);
  Open();
  Ask(1, Request(0, {1}));
  gated_tier_.WaitForCopy();
  v1::GatherRequest request = Request(0, {2});
  request.set_version(std::string(100000, 'v'));
  Ask(2, request);
  Ask(3, v1::GatherRequest(), 0);
  Cancel(3);
  EXPECT_EQ(Await(3).status.code(), absl::StatusCode::kCancelled);
  service_->UpdateGauges();
  EXPECT_GT(metrics_.gauges().bytes_in_flight->Value(), 100000);
  gated_tier_.Open();
  EXPECT_EQ(ReasonOf(Await(2).status), ErrorReason::kWrongTable);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, TooManyLayersAreRefused) {
  Start();
  Open();
  v1::GatherRequest request;
  for (int i = 0; i < 1025; ++i) request.add_layers();
  Ask(1, request);
  EXPECT_EQ(ReasonOf(Await(1).status), ErrorReason::kTooLarge);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(GatherStreamTest, AStreamTakesAQuarterOfAllSlots) {
  Start({.max_gathers_in_flight = 8}, &gated_tier_);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetTableResponse table;
  ASSERT_TRUE(stub_->GetTable(&context, {}, &table).ok());
  EXPECT_EQ(table.max_gathers_in_flight_per_stream(), 2U);
  Open();
  for (uint64_t id = 1; id <= 3; ++id) Ask(id, Request(0, {1}));
  EXPECT_EQ(ReasonOf(Await(3).status), ErrorReason::kOverloaded);
  gated_tier_.Open();
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

// A gather that arrives while the only worker is at a stream of many pieces is
// not behind all of them.
TEST_F(GatherStreamTest, AStreamGivesItsWorkerBack) {
  constexpr int kPieces = 20000;
  Start({.piece_bytes = 1, .max_queued_pieces = 2 * kPieces}, &gated_tier_,
        /*worker_threads=*/1);
  Open();
  Ask(1, Request(0, ManyIds(kPieces)));
  gated_tier_.WaitForCopy();
  grpc::ClientContext context;
  SetDeadline(context);
  const v1::GatherRequest request = Request(1, {1});
  v1::GatherResponse response;
  Notification done;
  grpc::Status status;
  stub_->async()->Gather(&context, &request, &response,
                         [&](const grpc::Status& result) {
                           status = result;
                           done.Notify();
                         });
  const absl::Time soon = absl::Now() + absl::Seconds(20);
  do {
    service_->UpdateGauges();
  } while (metrics_.gauges().gathers_in_flight->Value() < 2 &&
           absl::Now() < soon);
  gated_tier_.Open();
  done.Wait();
  EXPECT_TRUE(status.ok());
  EXPECT_LT(gated_tier_.first_copy(1), kPieces);
  EXPECT_EQ(Await(1).rows.size(), Rows(0, ManyIds(kPieces)).size());
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
  FixWindow();
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

TEST_F(GatherStreamTest, AMessageThatCannotBeDecodedEndsTheStream) {
  Start();
  grpc::GenericStub stub(MakeChannel(server_->address()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(context);
  const auto await = [&](intptr_t expected) {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok &&
           tag == reinterpret_cast<void*>(expected);
  };
  const auto stream = stub.PrepareCall(
      &context, "/engram.v1.TableService/GatherStream", &queue);
  stream->StartCall(reinterpret_cast<void*>(1));
  ASSERT_TRUE(await(1));
  const grpc::Slice garbage("\x0a\xff\xff\xff\xff");
  stream->Write(grpc::ByteBuffer(&garbage, 1), reinterpret_cast<void*>(2));
  ASSERT_TRUE(await(2));
  grpc::Status status;
  stream->Finish(&status, reinterpret_cast<void*>(3));
  ASSERT_TRUE(await(3));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("could not be decoded"));
  queue.Shutdown();
}

// The small one is there before the first of many pieces of the large one is.
TEST_F(GatherStreamTest, ASmallGatherPassesALargeOne) {
  Start({.small_bytes = 1000}, &gated_tier_, /*worker_threads=*/1);
  Open();
  const std::vector<RowId> many = ManyIds(60000);
  Ask(1, Request(0, many));
  gated_tier_.WaitForCopy();
  Ask(2, Request(0, {1}));
  // Answered only after the second was read, for the messages are in order.
  Ask(3, v1::GatherRequest(), 0);
  Cancel(3);
  EXPECT_EQ(Await(3).status.code(), absl::StatusCode::kCancelled);
  gated_tier_.Open();
  ASSERT_THAT(Await(2).status, IsOk());
  EXPECT_EQ(answers_[2].rows, Rows(0, {1}));
  EXPECT_FALSE(answers_[1].ended);
  ASSERT_THAT(Await(1).status, IsOk());
  EXPECT_GT(answers_[1].piece_bytes.size(), 4U);
  // Far too much to be printed.
  EXPECT_TRUE(answers_[1].rows == Rows(0, many));
  EXPECT_THAT(CloseAndFinish(), IsOk());
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

// A caller that asks and asks and reads nothing: the server gathers what its
// queue and the connection take, not the answers.
TEST_F(GatherStreamTest, ASlowReaderHoldsNoMoreThanItsQueue) {
  constexpr int kTurns = 600;
  const uint64_t row_bytes = manifest_.row_format().row_bytes();
  // A piece is one copy, and kTurns of them are far from all.
  const uint64_t piece_rows = 2048;
  gated_tier_.Open();
  Start({.piece_bytes = piece_rows * row_bytes}, &gated_tier_,
        /*worker_threads=*/1);
  FixWindow();
  Open();
  const std::vector<RowId> ids = ManyIds(65536);
  ASSERT_GT(64 * ids.size() / piece_rows, 2U * kTurns);
  for (uint64_t id = 0; id < 64; ++id) Ask(id, Request(0, ids));
  // The only worker takes turns: between two of these gathers it would gather
  // a piece of the stream, were there no end to what the stream may hold.
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_THAT(Gather(Request(0, {1})), IsOk());
  }
  EXPECT_LT(gated_tier_.copies() - kTurns, kTurns / 2);
  EXPECT_EQ(Await(0).rows, Rows(0, ids));
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
