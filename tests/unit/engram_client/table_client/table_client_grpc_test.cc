#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/grpc_fake_service.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

// The client over real gRPC and a unix socket.
class TableClientGrpcTest : public ::testing::Test {
 protected:
  void Connect() {
    auto client =
        TableClient::Create({.addresses = {address_}, .want_crc32c = true});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  // For hooks of the service, which ends before them.
  Notification arrived_;
  Notification cancelled_;
  const TempFolder folder_;
  const std::string address_ = folder_.Socket("server");
  std::optional<GrpcFakeService> service_;
  std::unique_ptr<TableClient> client_;
};

TEST_F(TableClientGrpcTest, GathersRightRows) {
  service_.emplace(address_);
  Connect();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    auto buffers = GatherBuffers::Random(500, seed);
    const absl::Status status = client_->Gather(buffers.Layers(), Later());
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(buffers.Right());
  }
}

TEST_F(TableClientGrpcTest, GathersOfManyThreadsAreRight) {
  service_.emplace(address_);
  Connect();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (uint32_t i = 0; i < 10; ++i) {
        // Both layers are one call.
        auto buffers =
            GatherBuffers::Random(i % 2 == 0 ? 900 : 20, t * 100 + i);
        auto dropped = GatherBuffers::Random(700, t);
        auto cancelled = client_->Prefetch(dropped.Layers(), Later(), nullptr);
        const absl::Status status = client_->Gather(buffers.Layers(), Later());
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_TRUE(buffers.Right());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TableClientGrpcTest, RefusesThreadsAndSpinBeyondTheLimits) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      TableClient::Create({.addresses = {address_}, .poll_threads = 65})
          .status()));
  for (const absl::Duration spin :
       {absl::Milliseconds(2), -absl::Microseconds(1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        TableClient::Create({.addresses = {address_}, .spin = spin}).status()));
  }
}

TEST_F(TableClientGrpcTest, WaitsForAServerThatComesLate) {
  Notification connecting;
  std::thread late([&] {
    connecting.Wait();
    service_.emplace(address_);
  });
  connecting.Notify();
  Connect();
  late.join();
  GatherBuffers buffers({1, 2, 3});
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_TRUE(buffers.Right());
}

TEST_F(TableClientGrpcTest, AGatherWaitsForAServerThatComesBack) {
  service_.emplace(address_);
  Connect();
  GatherBuffers buffers({1, 2, 3});
  ASSERT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  service_.reset();
  buffers.Poison();
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  service_.emplace(address_);
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(buffers.Right());
}

TEST_F(TableClientGrpcTest, KeepsTheDeadlineWithoutAnyServer) {
  service_.emplace(address_);
  Connect();
  service_.reset();
  GatherBuffers buffers({1, 2, 3});
  const absl::Time deadline = In(absl::Milliseconds(300));
  const absl::Status status = client_->Gather(buffers.Layers(), deadline);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_LE(absl::Now(), deadline + absl::Seconds(10));
  EXPECT_TRUE(buffers.Poisoned());
}

// The servers change while gathers go on.
TEST_F(TableClientGrpcTest, FollowsAFileOfMembers) {
  const std::string second = folder_.Socket("second");
  const std::string path = folder_.File("members");
  const auto write = [&](const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  };
  write("a " + address_ + "\n");
  service_.emplace(address_);
  auto client = TableClient::Create({.members = "file:" + path});
  ASSERT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
  std::atomic<bool> stop{false};
  std::vector<std::thread> gatherers;
  for (uint32_t t = 0; t < 2; ++t) {
    gatherers.emplace_back([&, t] {
      for (uint32_t i = 0; !stop; ++i) {
        auto buffers = GatherBuffers::Random(i % 2 == 0 ? 400 : 10, t + 10 * i);
        const absl::Status status = client_->Gather(buffers.Layers(), Later());
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_TRUE(buffers.Right());
      }
    });
  }
  const auto await_only_server = [&](const std::string& address) {
    const absl::Time give_up = Later();
    std::vector<TableClient::ServerState> servers;
    do {
      ASSERT_LT(absl::Now(), give_up);
      std::this_thread::yield();
      servers = client_->servers();
    } while (servers.size() != 1 || servers[0].address != address ||
             !servers[0].connected);
  };
  await_only_server(address_);
  GrpcFakeService other(second);
  write("a " + second + "\n");
  service_.reset();
  await_only_server(second);
  stop = true;
  for (std::thread& gatherer : gatherers) gatherer.join();
  client_.reset();
}

TEST_F(TableClientGrpcTest, ADroppedGatherIsCancelledAtTheServer) {
  service_.emplace(address_);
  service_->on_gather = [&](const GrpcFakeService::Gather& asked) {
    arrived_.Notify();
    for (const absl::Time give_up = Later(); !asked.cancelled;) {
      if (absl::Now() > give_up) return grpc::Status::OK;
      std::this_thread::yield();
    }
    cancelled_.Notify();
    return grpc::Status::CANCELLED;
  };
  Connect();
  GatherBuffers buffers({1});
  auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  arrived_.Wait();
  gather.reset();
  EXPECT_TRUE(cancelled_.WaitUntil(Later()));
  EXPECT_TRUE(buffers.Poisoned());
}

}  // namespace
}  // namespace engram
