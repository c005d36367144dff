#include "table_server/peers/grpc_peer_calls.h"

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/peers/test_peer.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::Soon;
using ::engram::test::TempDir;
using ::engram::test::TestPeer;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Exchanges that are never answered, and fetches as a test wants them.
class OddService final : public v1::TableService::Service {
 public:
  explicit OddService(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~OddService() override {
    release_.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Status Exchange(grpc::ServerContext*, const v1::ExchangeRequest*,
                        v1::ExchangeResponse*) override {
    arrived_.Notify();
    release_.Wait();
    return grpc::Status::OK;
  }
  grpc::Status FetchPartition(
      grpc::ServerContext* context, const v1::FetchPartitionRequest*,
      grpc::ServerWriter<v1::FetchPartitionResponse>* writer) override {
    while (!context->IsCancelled() && writer->Write({})) {
    }
    return grpc::Status::OK;
  }
  void WaitForExchange() { arrived_.Wait(); }

 private:
  Notification arrived_;
  Notification release_;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcPeerCallsTest : public ::testing::Test {
 protected:
  GrpcPeerCallsTest() { calls_.Start(self_.server->loops()); }
  ~GrpcPeerCallsTest() override { calls_.Stop(); }

  // At the peer.
  void AwaitNoFetches() {
    const absl::Time give_up = Soon();
    while (peer_.fetches() > 0) {
      ASSERT_LT(absl::Now(), give_up);
      std::this_thread::yield();
    }
  }

  // An exchange and its answer.
  struct Pending {
    Notification done;
    std::atomic<int> times{0};
    absl::StatusOr<v1::ExchangeResponse> answer;
  };
  std::shared_ptr<Pending> Start(const std::string& address,
                                 const v1::ExchangeRequest& request,
                                 absl::Time deadline) {
    auto pending = std::make_shared<Pending>();
    calls_.Exchange(address, request, deadline, [pending](auto answer) {
      pending->answer = std::move(answer);
      ++pending->times;
      pending->done.Notify();
    });
    return pending;
  }
  absl::StatusOr<v1::ExchangeResponse> Exchange(
      const std::string& address, const v1::ExchangeRequest& request) {
    const auto pending = Start(address, request, Soon());
    pending->done.Wait();
    return pending->answer;
  }

  PeerCalls::Fetch FetchOf(size_t layer_index, uint32_t partition) const {
    return {.version = manifest_.version(),
            .ref = {manifest_.layers()[layer_index].layer_id,
                    PartitionId{partition}},
            .deadline = Soon()};
  }
  absl::Status Fetch(const std::string& address, const PeerCalls::Fetch& fetch,
                     std::string& rows) {
    return calls_.FetchPartition(
        address, fetch, [&](absl::Span<const std::byte> more) {
          rows.append(reinterpret_cast<const char*>(more.data()), more.size());
          return absl::OkStatus();
        });
  }
  absl::Status Fetch(const std::string& address,
                     const PeerCalls::Fetch& fetch) {
    std::string rows;
    return Fetch(address, fetch, rows);
  }

  const TempDir dir_;
  const Manifest manifest_ = test::TinyManifest();
  TestPeer self_{manifest_, "self", dir_.File("self")};
  TestPeer peer_{manifest_, "p1", dir_.File("p1"), {.fetch_piece_bytes = 2000}};
  GrpcPeerCalls calls_;
};

TEST_F(GrpcPeerCallsTest, ExchangesOnTheServersOwnQueues) {
  for (int i = 0; i < 20; ++i) {
    const auto answer = Exchange(peer_.address(), {});
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->server_name(), "p1");
  }
  v1::ExchangeRequest request;
  request.set_version("other");
  EXPECT_EQ(ReasonOf(Exchange(peer_.address(), request).status()),
            ErrorReason::kWrongTable);
  EXPECT_THAT(Exchange("unix:" + dir_.File("nobody"), {}),
              IsError(absl::StatusCode::kUnavailable, _));
}

TEST_F(GrpcPeerCallsTest, AnExchangeEndsByItsDeadline) {
  OddService silent("unix:" + dir_.File("odd"));
  const auto pending = Start("unix:" + dir_.File("odd"), {},
                             absl::Now() + absl::Milliseconds(50));
  pending->done.Wait();
  EXPECT_THAT(pending->answer, IsError(absl::StatusCode::kDeadlineExceeded, _));
}

TEST_F(GrpcPeerCallsTest, StopEndsCallsUnderWayOnce) {
  OddService silent("unix:" + dir_.File("odd"));
  const auto pending = Start("unix:" + dir_.File("odd"), {}, Soon());
  silent.WaitForExchange();
  calls_.Stop();
  EXPECT_TRUE(pending->done.HasBeenNotified());
  EXPECT_EQ(pending->times.load(), 1);
  EXPECT_THAT(pending->answer, IsError(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(Exchange(peer_.address(), {}),
              IsError(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(Fetch(peer_.address(), FetchOf(0, 0)),
              IsError(absl::StatusCode::kCancelled, _));
  calls_.Stop();
}

TEST_F(GrpcPeerCallsTest, CallsBeforeStartAreCancelled) {
  GrpcPeerCalls calls;
  absl::Status status;
  calls.Exchange(peer_.address(), {}, Soon(),
                 [&](auto answer) { status = answer.status(); });
  EXPECT_THAT(status, IsError(absl::StatusCode::kCancelled, _));
}

TEST_F(GrpcPeerCallsTest, FetchesPartitionsByteForByte) {
  peer_.gated_tier.Open();
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest_.partition_count(i); p += 7) {
      const PeerCalls::Fetch fetch = FetchOf(i, p);
      std::string rows;
      ASSERT_THAT(Fetch(peer_.address(), fetch, rows), IsOk());
      ASSERT_EQ(rows, test::SyntheticPartition(manifest_, fetch.ref));
    }
  }
  PeerCalls::Fetch fetch = FetchOf(0, 1);
  fetch.offset_bytes = 4 * manifest_.row_format().row_bytes();
  std::string rows;
  ASSERT_THAT(Fetch(peer_.address(), fetch, rows), IsOk());
  EXPECT_EQ(rows, test::SyntheticPartition(manifest_, fetch.ref)
                      .substr(fetch.offset_bytes));
  fetch.version = "other";
  EXPECT_EQ(ReasonOf(Fetch(peer_.address(), fetch)), ErrorReason::kWrongTable);
}

TEST_F(GrpcPeerCallsTest, TheSinksErrorEndsAFetch) {
  peer_.gated_tier.Open();
  int pieces = 0;
  const absl::Status status = calls_.FetchPartition(
      peer_.address(), FetchOf(0, 0), [&](absl::Span<const std::byte>) {
        ++pieces;
        return absl::AbortedError("enough");
      });
  EXPECT_THAT(status, IsError(absl::StatusCode::kAborted, "enough"));
  EXPECT_EQ(pieces, 1);
  AwaitNoFetches();
}

TEST_F(GrpcPeerCallsTest, AStalledFetchIsGivenUp) {
  PeerCalls::Fetch fetch = FetchOf(0, 0);
  fetch.stall_timeout = absl::Milliseconds(60);
  EXPECT_THAT(Fetch(peer_.address(), fetch),
              IsError(absl::StatusCode::kDeadlineExceeded,
                      AllOf(HasSubstr("no rows"), HasSubstr(peer_.address()))));
  AwaitNoFetches();
}

TEST_F(GrpcPeerCallsTest, EmptyPiecesAreNoProgress) {
  OddService chatty("unix:" + dir_.File("odd"));
  PeerCalls::Fetch fetch = FetchOf(0, 0);
  fetch.stall_timeout = absl::Milliseconds(60);
  EXPECT_THAT(Fetch("unix:" + dir_.File("odd"), fetch),
              IsError(absl::StatusCode::kDeadlineExceeded, _));
}

TEST_F(GrpcPeerCallsTest, AFetchEndsByItsDeadlineAndByItsFlag) {
  PeerCalls::Fetch fetch = FetchOf(0, 0);
  fetch.deadline = absl::Now() + absl::Milliseconds(50);
  EXPECT_THAT(Fetch(peer_.address(), fetch),
              IsError(absl::StatusCode::kDeadlineExceeded, _));
  std::atomic<bool> stop{false};
  fetch = FetchOf(0, 0);
  fetch.stop = &stop;
  std::thread stopper([&] {
    peer_.gated_tier.WaitForCopy();
    stop.store(true);
  });
  EXPECT_THAT(Fetch(peer_.address(), fetch),
              IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  stopper.join();
}

TEST_F(GrpcPeerCallsTest, StopEndsFetches) {
  std::thread stopper([&] {
    peer_.gated_tier.WaitForCopy();
    calls_.Stop();
  });
  EXPECT_THAT(Fetch(peer_.address(), FetchOf(0, 0)),
              IsError(absl::StatusCode::kCancelled, _));
  stopper.join();
}

TEST_F(GrpcPeerCallsTest, ForgottenPeersAreConnectedToAgain) {
  peer_.gated_tier.Open();
  ASSERT_THAT(Exchange(peer_.address(), {}), IsOk());
  calls_.Retain({peer_.address()});
  ASSERT_THAT(Exchange(peer_.address(), {}), IsOk());
  bool forgotten = false;
  const absl::Status status = calls_.FetchPartition(
      peer_.address(), FetchOf(0, 0), [&](absl::Span<const std::byte>) {
        if (!forgotten) calls_.Retain({});
        forgotten = true;
        return absl::OkStatus();
      });
  EXPECT_THAT(status, IsOk());
  EXPECT_THAT(Exchange(peer_.address(), {}), IsOk());
}

}  // namespace
}  // namespace engram
