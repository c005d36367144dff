#include "engram_client/rpc/grpc_table_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/grpc_fake_service.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

struct VectorSink final : RowSink {
  void Write(uint64_t offset, absl::Span<const std::byte> piece) override {
    ASSERT_LE(offset + piece.size(), bytes.size());
    std::copy(piece.begin(), piece.end(), bytes.begin() + offset);
  }
  std::vector<std::byte> bytes;
};

class GrpcTableTransportTest : public ::testing::Test {
 protected:
  // Rows 3, 4 of layer 1, then 5 of layer 14.
  absl::Status Gather(absl::Time deadline, bool want_crc32c = true) {
    const std::vector<RowId> one = {3, 4};
    const std::vector<RowId> fourteen = {5};
    const std::vector<TableTransport::RowRun> runs = {
        {LayerId{1}, absl::MakeConstSpan(one).subspan(0, 1)},
        {LayerId{1}, absl::MakeConstSpan(one).subspan(1, 1)},
        {LayerId{14}, fourteen}};
    sink_->bytes.assign(3 * FakeTable::kRowBytes, std::byte{0xEE});
    absl::Status result;
    Notification done;
    call_ = transport_->Gather({.version = "table-a",
                                .runs = runs,
                                .reply_bytes = 3 * FakeTable::kRowBytes,
                                .want_crc32c = want_crc32c,
                                .deadline = deadline},
                               sink_, [&](absl::Status status) {
                                 result = std::move(status);
                                 done.Notify();
                               });
    started_.Notify();
    EXPECT_TRUE(done.WaitUntil(absl::Now() + absl::Seconds(60)));
    return result;
  }
  absl::Status Gather() { return Gather(absl::Now() + absl::Seconds(30)); }

  // For hooks of the service, which ends before them.
  Notification arrived_;
  Notification released_;
  Notification server_saw_it_;
  const TempFolder folder_;
  const std::string address_ = folder_.Socket("a");
  GrpcFakeService service_{address_};
  std::shared_ptr<VectorSink> sink_ = std::make_shared<VectorSink>();
  const std::shared_ptr<ClientLoops> loops_ =
      std::make_shared<ClientLoops>(ClientLoops::Options());
  std::unique_ptr<TableTransport> transport_ =
      MakeGrpcTableTransport(address_, loops_);
  std::shared_ptr<TransportCall> call_;
  Notification started_;
};

TEST_F(GrpcTableTransportTest, BringsTheRowsAsked) {
  std::vector<int> layers;
  service_.piece_bytes = 40;
  service_.on_gather = [&](const GrpcFakeService::Gather& gather) {
    for (const auto& layer : gather.request.gather().layers()) {
      layers.push_back(static_cast<int>(layer.layer_id()));
    }
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Gather().ok());
  std::vector<std::byte> want(3 * FakeTable::kRowBytes);
  FakeTable::WriteRow(LayerId{1}, 3, want.data());
  FakeTable::WriteRow(LayerId{1}, 4, want.data() + FakeTable::kRowBytes);
  FakeTable::WriteRow(LayerId{14}, 5, want.data() + 2 * FakeTable::kRowBytes);
  EXPECT_EQ(sink_->bytes, want);
  EXPECT_THAT(layers, testing::ElementsAre(1, 14));  // runs were joined
}

TEST_F(GrpcTableTransportTest, RefusesAReplyOfAnotherTable) {
  service_.change_last_piece = [](auto& piece) { piece.set_version("old"); };
  const absl::Status status = Gather();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'old'"));
}

TEST_F(GrpcTableTransportTest, RefusesAReplyOfAnotherSize) {
  service_.change_last_piece = [](auto& piece) {
    piece.mutable_rows()->pop_back();
  };
  EXPECT_TRUE(absl::IsDataLoss(Gather()));
}

TEST_F(GrpcTableTransportTest, RefusesAChangedByteWhereASumWasAskedFor) {
  service_.change_last_piece = [](auto& piece) {
    (*piece.mutable_rows())[20] ^= 1;
  };
  const absl::Status status = Gather();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("CRC32C"));
  EXPECT_TRUE(
      Gather(absl::Now() + absl::Seconds(30), /*want_crc32c=*/false).ok());
}

TEST_F(GrpcTableTransportTest, KeepsTheDetailsOfAnError) {
  service_.on_gather = [](const GrpcFakeService::Gather&) {
    return ToGrpcStatus<grpc::Status>(PartitionNotHereError(
        "a", {{LayerId{14}, PartitionId{2}}}, {{LayerId{14}, 5}}));
  };
  const absl::Status status = Gather();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kPartitionNotHere);
  EXPECT_EQ(MissingPartitionsOf(status).size(), 1u);
}

TEST_F(GrpcTableTransportTest, CancelReachesTheServer) {
  service_.on_gather = [&](const GrpcFakeService::Gather& gather) {
    arrived_.Notify();
    while (!gather.cancelled) std::this_thread::yield();
    server_saw_it_.Notify();
    return grpc::Status::OK;
  };
  std::thread canceller([&] {
    started_.Wait();
    arrived_.Wait();
    call_->Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(Gather(absl::InfiniteFuture())));
  canceller.join();
  EXPECT_TRUE(server_saw_it_.WaitUntil(absl::Now() + absl::Seconds(30)));
}

TEST_F(GrpcTableTransportTest, TheDeadlineIsKept) {
  service_.on_gather = [&](const GrpcFakeService::Gather&) {
    released_.Wait();
    return grpc::Status::OK;
  };
  const absl::Time start = absl::Now();
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(Gather(start + absl::Milliseconds(200))));
  EXPECT_GE(absl::Now(), start + absl::Milliseconds(190));
  released_.Notify();
}

TEST_F(GrpcTableTransportTest, TheDeadlineIsSent) {
  absl::Duration sent;
  service_.on_gather = [&](const GrpcFakeService::Gather& gather) {
    sent = absl::Microseconds(gather.request.timeout_us());
    return grpc::Status::OK;
  };
  const absl::Time deadline = absl::Now() + absl::Minutes(10);
  ASSERT_TRUE(Gather(deadline).ok());
  EXPECT_GE(sent, absl::Minutes(9));
  EXPECT_LE(sent, absl::Minutes(10));
  ASSERT_TRUE(Gather(absl::InfiniteFuture()).ok());
  EXPECT_EQ(sent, absl::ZeroDuration());
}

TEST_F(GrpcTableTransportTest, DestroyingItEndsWatches) {
  Notification snapshot;
  Notification ended;
  transport_->WatchPartitions(
      [&](const v1::WatchPartitionsResponse& message) {
        if (message.has_snapshot()) snapshot.Notify();
      },
      [&](const absl::Status& status) {
        EXPECT_TRUE(absl::IsCancelled(status)) << status;
        ended.Notify();
      });
  snapshot.Wait();
  transport_.reset();
  EXPECT_TRUE(ended.HasBeenNotified());
}

TEST_F(GrpcTableTransportTest, SaysThatNobodyListens) {
  transport_ = MakeGrpcTableTransport(folder_.Socket("nobody"), loops_);
  Notification done;
  transport_->GetTable(absl::Now() + absl::Seconds(30),
                       [&](const absl::StatusOr<v1::GetTableResponse>& table) {
                         EXPECT_TRUE(absl::IsUnavailable(table.status()));
                         done.Notify();
                       });
  done.Wait();
}

}  // namespace
}  // namespace engram
