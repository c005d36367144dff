#include "engram_client/rpc/gather_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_size.h"
#include "engram_client/rpc/client_loops.h"
#include "engram_client/rpc/grpc_table_transport.h"
#include "tests/unit/engram_client/grpc_fake_service.h"
#include "tests/unit/engram_client/rpc/raw_gather_service.h"
#include "tests/unit/engram_client/rpc/started_gather.h"

namespace engram {
namespace {

using ::testing::HasSubstr;
using Stream = RawGatherService::Stream;

class GatherLaneTest : public ::testing::Test {
 protected:
  void Serve(RawGatherService::Script script) {
    service_.emplace(address_, std::move(script));
    lane_.emplace(MakeChannel(address_), loops_->Next());
  }

  // For scripts, which end before them.
  Notification arrived_;
  Notification released_;
  const TempFolder folder_;
  const std::string address_ = folder_.Socket("a");
  std::optional<RawGatherService> service_;
  const std::shared_ptr<ClientLoops> loops_ =
      std::make_shared<ClientLoops>(ClientLoops::Options());
  std::optional<GatherLane> lane_;
};

TEST_F(GatherLaneTest, PiecesOfGathersMayAlternate) {
  Serve([](Stream& stream) {
    const uint64_t a = stream.Read().call_id();
    const uint64_t b = stream.Read().call_id();
    stream.WritePiece(a, "a");
    stream.WritePiece(b, "bb");
    stream.WritePiece(a, "");
    stream.WriteLastPiece(b, "bb");
    stream.WriteLastPiece(a, "aaa");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const StartedGather a(*lane_);
  const StartedGather b(*lane_);
  EXPECT_TRUE(a.Wait().ok()) << a.Wait();
  EXPECT_TRUE(b.Wait().ok()) << b.Wait();
  EXPECT_EQ(a.text(), "aaaa");
  EXPECT_EQ(b.text(), "bbbb");
  EXPECT_EQ(lane_->outstanding_bytes(), 0u);
}

TEST_F(GatherLaneTest, AnEndedStreamEndsItsGathersAndTheNextOpensAnother) {
  Serve([](Stream& stream) {
    const uint64_t first = stream.Read().call_id();
    if (stream.number() == 1) {
      stream.Read();
      stream.WritePiece(first, "ab");
      return grpc::Status::OK;
    }
    if (stream.number() == 2) {
      return ToGrpcStatus<grpc::Status>(MakeError(ErrorReason::kDraining, "x"));
    }
    stream.WriteLastPiece(first, "abcd");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const StartedGather one(*lane_);
  const StartedGather two(*lane_);
  EXPECT_TRUE(absl::IsUnavailable(one.Wait())) << one.Wait();
  EXPECT_TRUE(absl::IsUnavailable(two.Wait())) << two.Wait();
  EXPECT_EQ(ReasonOf(StartedGather(*lane_).Wait()), ErrorReason::kDraining);
  const StartedGather last(*lane_);
  EXPECT_TRUE(last.Wait().ok()) << last.Wait();
  EXPECT_EQ(last.text(), "abcd");
  EXPECT_EQ(service_->streams(), 3);
}

TEST_F(GatherLaneTest, AServerThatGoesAndComesBack) {
  const auto answer = [](Stream& stream) {
    v1::GatherStreamRequest request;
    while (stream.Read(&request)) {
      stream.WriteLastPiece(request.call_id(), "abcd");
    }
    return grpc::Status::OK;
  };
  Serve(answer);
  EXPECT_TRUE(StartedGather(*lane_).Wait().ok());
  service_.reset();
  EXPECT_FALSE(StartedGather(*lane_).Wait().ok());
  service_.emplace(address_, answer);
  // The first only makes the channel connect again.
  absl::Status status = absl::UnavailableError("not tried");
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (!status.ok() && absl::Now() < end) {
    status = StartedGather(*lane_).Wait();
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(GatherLaneTest, AServerThatNeverAnswersIsLeftAtTheDeadline) {
  Serve([](Stream& stream) {
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const absl::Time start = absl::Now();
  // The earlier deadline comes second.
  const StartedGather late(*lane_, {.deadline = start + absl::Seconds(1)});
  const StartedGather early(*lane_,
                            {.deadline = start + absl::Milliseconds(100)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(early.Wait())) << early.Wait();
  EXPECT_FALSE(late.done());
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Wait())) << late.Wait();
  EXPECT_GE(absl::Now(), start + absl::Milliseconds(990));
  const StartedGather passed(*lane_, {.deadline = start});
  EXPECT_TRUE(absl::IsDeadlineExceeded(passed.Wait())) << passed.Wait();
}

TEST_F(GatherLaneTest, WhatComesAfterACancelIsDropped) {
  Serve([this](Stream& stream) {
    const uint64_t cancelled = stream.Read().call_id();
    stream.WritePiece(cancelled, "a");
    arrived_.Notify();
    const v1::GatherStreamRequest cancel = stream.Read();
    EXPECT_TRUE(cancel.has_cancel());
    EXPECT_EQ(cancel.call_id(), cancelled);
    released_.Wait();
    stream.WritePiece(cancelled, "bb");
    stream.WriteLastPiece(cancelled, "c");
    stream.WriteLastPiece(stream.Read().call_id(), "abcd");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  StartedGather gather(*lane_);
  arrived_.Wait();
  gather.Cancel();
  EXPECT_TRUE(absl::IsCancelled(gather.Wait())) << gather.Wait();
  gather.Cancel();  // of a gather that has ended
  const std::string text = gather.text();
  released_.Notify();
  EXPECT_TRUE(StartedGather(*lane_).Wait().ok());
  EXPECT_EQ(gather.text(), text);
}

TEST_F(GatherLaneTest, AWarmLaneHasItsStream) {
  Serve([this](Stream& stream) {
    // The message that opens it is of no gather.
    const v1::GatherStreamRequest open = stream.Read();
    EXPECT_TRUE(open.has_cancel());
    arrived_.Notify();
    const v1::GatherStreamRequest gather = stream.Read();
    EXPECT_TRUE(gather.has_gather());
    EXPECT_NE(gather.call_id(), open.call_id());
    stream.WriteLastPiece(gather.call_id(), "abcd");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  lane_->WarmUp();
  lane_->WarmUp();
  arrived_.Wait();
  EXPECT_TRUE(StartedGather(*lane_).Wait().ok());
  lane_->WarmUp();
  EXPECT_EQ(service_->streams(), 1);
}

TEST_F(GatherLaneTest, WarmsUpAgainOnceItsStreamHasEnded) {
  Serve([this](Stream& stream) {
    stream.Read();
    if (stream.number() == 1) return grpc::Status::OK;
    arrived_.Notify();
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (!arrived_.HasBeenNotified() && absl::Now() < give_up) {
    lane_->WarmUp();
  }
  EXPECT_TRUE(arrived_.HasBeenNotified());
}

// As a server that is stopped.
TEST_F(GatherLaneTest, AStreamOnWhichCancelsAreNotAnsweredIsLeft) {
  Serve([this](Stream& stream) {
    if (stream.number() == 1) {
      released_.Wait();
      stream.ReadToTheEnd();
    }
    v1::GatherStreamRequest request;
    while (stream.Read(&request)) {
      if (!request.has_gather()) continue;
      stream.WriteLastPiece(request.call_id(), "abcd");
    }
    return grpc::Status::OK;
  });
  const StartedGather other(*lane_);
  // One that is cancelled before it is sent does not count; the last ones may
  // be on the next stream already.
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (!other.done() && absl::Now() < give_up) {
    StartedGather gather(*lane_);
    gather.Cancel();
    gather.Wait().IgnoreError();
  }
  EXPECT_TRUE(absl::IsUnavailable(other.Wait())) << other.Wait();
  const StartedGather next(*lane_);
  EXPECT_TRUE(next.Wait().ok()) << next.Wait();
  EXPECT_EQ(service_->streams(), 2);
  released_.Notify();
}

TEST_F(GatherLaneTest, CancelsThatAreAnsweredDoNotAddUp) {
  Serve([](Stream& stream) {
    v1::GatherStreamRequest request;
    while (stream.Read(&request)) {
      if (request.has_cancel()) {
        v1::GatherStreamResponse error;
        error.set_call_id(request.call_id());
        *error.mutable_error() = ToRpcStatusProto(absl::CancelledError(""));
        stream.Write(error);
      } else if (request.gather().layers(0).row_ids_size() == 4) {
        stream.WriteLastPiece(request.call_id(), "abcd");
      }  // others are never answered
    }
    return grpc::Status::OK;
  });
  for (size_t i = 0; i < 2 * LaneStream::kMaxAbandoned; ++i) {
    StartedGather cancelled(*lane_, {.rows = 3});
    const StartedGather answered(*lane_);
    cancelled.Cancel();
    EXPECT_TRUE(answered.Wait().ok()) << answered.Wait();
  }
  EXPECT_EQ(service_->streams(), 1);
}

TEST_F(GatherLaneTest, AFewAreInFlightAndTheOthersWaitTheirTurn) {
  static constexpr size_t kGathers = 200;
  Serve([this](Stream& stream) {
    std::deque<uint64_t> in_flight;
    for (size_t i = 0; i < LaneStream::kMaxInFlight; ++i) {
      in_flight.push_back(stream.Read().call_id());
    }
    released_.Wait();
    // Were more in flight than these, the last reads would have nothing.
    for (size_t i = 0; i < kGathers - LaneStream::kMaxInFlight; ++i) {
      stream.WriteLastPiece(in_flight.front(), "abcd");
      in_flight.pop_front();
      in_flight.push_back(stream.Read().call_id());
    }
    for (const uint64_t id : in_flight) stream.WriteLastPiece(id, "abcd");
    EXPECT_EQ(in_flight.back(), kGathers);
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  std::vector<StartedGather> gathers;
  for (size_t i = 0; i < kGathers; ++i) gathers.emplace_back(*lane_);
  // One that waits is never sent.
  StartedGather waiting(*lane_);
  waiting.Cancel();
  EXPECT_TRUE(absl::IsCancelled(waiting.Wait())) << waiting.Wait();
  released_.Notify();
  for (const StartedGather& gather : gathers) {
    EXPECT_TRUE(gather.Wait().ok()) << gather.Wait();
    EXPECT_EQ(gather.text(), "abcd");
  }
}

TEST_F(GatherLaneTest, NoMoreThanTheLimitWait) {
  Serve([this](Stream& stream) {
    for (size_t i = 0; i < LaneStream::kMaxInFlight; ++i) stream.Read();
    arrived_.Notify();
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  std::vector<StartedGather> gathers;
  const auto start = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) gathers.emplace_back(*lane_);
  };
  start(LaneStream::kMaxInFlight);
  arrived_.Wait();
  start(LaneStream::kMaxWaiting);
  const StartedGather refused(*lane_);
  EXPECT_EQ(ReasonOf(refused.Wait()), ErrorReason::kOverloaded);
  lane_.reset();
  EXPECT_TRUE(absl::IsCancelled(gathers.front().Wait()));
  EXPECT_TRUE(absl::IsCancelled(gathers[LaneStream::kMaxInFlight].Wait()));
}

TEST_F(GatherLaneTest, AFailedGatherLeavesTheOthersAlone) {
  Serve([](Stream& stream) {
    v1::GatherStreamResponse error;
    error.set_call_id(stream.Read().call_id());
    *error.mutable_error() =
        ToRpcStatusProto(MakeError(ErrorReason::kWrongTable, "another"));
    const uint64_t other = stream.Read().call_id();
    stream.Write(error);
    // Field 3, one byte that is no message.
    error.clear_error();
    error.set_call_id(stream.Read().call_id());
    stream.Write(error.SerializeAsString() + "\x1a\x01\xff");
    error.set_call_id(stream.Read().call_id());
    error.mutable_error();  // OK, which is no error
    stream.Write(error);
    stream.WriteLastPiece(other, "abcd");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const StartedGather failed(*lane_);
  const StartedGather other(*lane_);
  const StartedGather garbled(*lane_);
  const StartedGather no_error(*lane_);
  EXPECT_EQ(ReasonOf(failed.Wait()), ErrorReason::kWrongTable);
  EXPECT_TRUE(absl::IsDataLoss(garbled.Wait())) << garbled.Wait();
  EXPECT_TRUE(absl::IsDataLoss(no_error.Wait())) << no_error.Wait();
  EXPECT_TRUE(other.Wait().ok()) << other.Wait();
}

TEST_F(GatherLaneTest, AReplyThatIsNotTheOneAskedForIsRefused) {
  Serve([](Stream& stream) {
    stream.WriteLastPiece(stream.Read().call_id(), "abcd", "w");
    stream.WriteLastPiece(stream.Read().call_id(), "abc");
    // What is too long is cancelled before its end.
    stream.WritePiece(stream.Read().call_id(), "abcde");
    EXPECT_TRUE(stream.Read().has_cancel());
    stream.WriteLastPiece(stream.Read().call_id(), "abcd");  // crc32c is 0
    stream.WriteLastPiece(stream.Read().call_id(), "abcd");
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const absl::Status version = StartedGather(*lane_).Wait();
  EXPECT_TRUE(absl::IsDataLoss(version));
  EXPECT_THAT(std::string(version.message()), HasSubstr("table 'w', not v"));
  const absl::Status shorter = StartedGather(*lane_).Wait();
  EXPECT_TRUE(absl::IsDataLoss(shorter));
  EXPECT_THAT(std::string(shorter.message()), HasSubstr("3 bytes"));
  EXPECT_TRUE(absl::IsDataLoss(StartedGather(*lane_).Wait()));
  const absl::Status sum = StartedGather(*lane_, {.want_crc32c = true}).Wait();
  EXPECT_TRUE(absl::IsDataLoss(sum));
  EXPECT_THAT(std::string(sum.message()), HasSubstr("CRC32C"));
  EXPECT_TRUE(StartedGather(*lane_).Wait().ok());
}

// What cannot be understood may be of any gather: all are tried again.
class BadMessageTest : public GatherLaneTest,
                       public testing::WithParamInterface<std::string> {};

TEST_P(BadMessageTest, BreaksTheStreamOff) {
  Serve([](Stream& stream) {
    const uint64_t id = stream.Read().call_id();
    stream.Read();
    if (stream.number() == 1) {
      stream.Write(GetParam());
    } else {
      stream.WriteLastPiece(id, "abcd");
    }
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const StartedGather one(*lane_);
  const StartedGather two(*lane_);
  EXPECT_TRUE(absl::IsUnavailable(one.Wait())) << one.Wait();
  EXPECT_TRUE(absl::IsUnavailable(two.Wait())) << two.Wait();
  const StartedGather three(*lane_);
  StartedGather four(*lane_);
  EXPECT_TRUE(three.Wait().ok()) << three.Wait();
  four.Cancel();
}

INSTANTIATE_TEST_SUITE_P(
    All, BadMessageTest,
    testing::Values(std::string("\xff"),                 // no message
                    std::string("\x12\x7f", 2),          // cut off
                    std::string("", 0),                  // of no call
                    std::string("\x08\x03\x12\x00", 4),  // of a later call
                    std::string("\x08\x01", 2)));        // of no kind

TEST_F(GatherLaneTest, DestroyingItEndsItsGathers) {
  Serve([this](Stream& stream) {
    stream.WritePiece(stream.Read().call_id(), "ab");
    arrived_.Notify();
    stream.ReadToTheEnd();
    return grpc::Status::OK;
  });
  std::vector<StartedGather> gathers;
  for (size_t i = 0; i < 50; ++i) gathers.emplace_back(*lane_);
  arrived_.Wait();
  gathers[1].Cancel();
  lane_.reset();
  for (const StartedGather& gather : gathers) {
    EXPECT_TRUE(gather.done());
    EXPECT_TRUE(absl::IsCancelled(gather.Wait())) << gather.Wait();
  }
  gathers[0].Cancel();  // its lane is gone
}

TEST_F(GatherLaneTest, ALaneThatWasNeverUsedEnds) {
  Serve([](Stream&) { return grpc::Status::OK; });
  lane_.reset();
  EXPECT_EQ(service_->streams(), 0);
}

// A row has one byte here.
class LanesOfATransportTest : public GatherLaneTest {
 protected:
  // Large gathers get no answer before released_.
  LanesOfATransportTest() {
    Serve([this](Stream& stream) {
      std::vector<v1::GatherStreamRequest> large;
      v1::GatherStreamRequest request;
      while (stream.Read(&request)) {
        const auto rows =
            static_cast<size_t>(request.gather().layers(0).row_ids_size());
        if (rows > kSmallGatherBytes) released_.Wait();
        stream.WriteLastPiece(request.call_id(), std::string(rows, 'x'));
      }
      return grpc::Status::OK;
    });
    transport_ = MakeGrpcTableTransport(address_, loops_);
  }

  std::unique_ptr<TableTransport> transport_;
};

TEST_F(LanesOfATransportTest, SmallGathersPassLargeOnes) {
  std::vector<StartedGather> large;
  for (int i = 0; i < 10; ++i) {
    large.emplace_back(*transport_,
                       StartedGather::Options{.rows = kSmallGatherBytes + 1});
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(
        StartedGather(*transport_, {.rows = kSmallGatherBytes}).Wait().ok());
  }
  for (const StartedGather& gather : large) EXPECT_FALSE(gather.done());
  released_.Notify();
  for (const StartedGather& gather : large) EXPECT_TRUE(gather.Wait().ok());
  EXPECT_EQ(service_->streams(), static_cast<int>(kSmallLanes + kBulkLanes));
}

}  // namespace
}  // namespace engram
