#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

using GatherTest = FakeCluster;

TEST_F(GatherTest, FillsBothLayersFromOneServer) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({5, 999, 5, 0}, {5, 17});
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  ASSERT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(gather->done());
  EXPECT_TRUE(buffers.Right());
  const GatherStats stats = gather->stats();
  EXPECT_EQ(stats.rows, 6u);
  EXPECT_EQ(stats.unique_rows, 5u);
  EXPECT_EQ(stats.bytes_received, 5 * FakeTable::kRowBytes);
  EXPECT_EQ(stats.calls, 1u);
  EXPECT_EQ(stats.servers, 1u);
}

TEST_F(GatherTest, JoinsThePartitionsOfThreeServers) {
  StartServers(3);
  for (uint32_t p = 0; p < FakeTable{}.partition_count(); ++p) {
    server(p % 3).Add(LayerId{1}, {p});
    server((p + 1) % 3).Add(LayerId{14}, {p});
  }
  Connect();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    auto buffers = GatherBuffers::Random(300, seed);
    const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
    ASSERT_TRUE(gather->Wait().ok()) << gather->Wait();
    ASSERT_TRUE(buffers.Right());
    EXPECT_EQ(gather->stats().servers, 3u);
  }
}

TEST_F(GatherTest, ALaterLayerAloneGoesToItsOwnHolders) {
  StartServers(2);
  for (uint32_t p = 0; p < FakeTable{}.partition_count(); ++p) {
    server(p % 2).Add(LayerId{1}, {p});
    server((p + 1) % 2).Add(LayerId{14}, {p});
  }
  Connect();
  GatherBuffers buffers({1}, {0, 16, 500, 999});
  const auto gather =
      client_->Prefetch({buffers.Layers()[1]}, Later(), nullptr);
  ASSERT_TRUE(gather->Wait().ok()) << gather->Wait();
  EXPECT_EQ(gather->stats().calls, 2u);  // nobody was asked in vain
}

TEST_F(GatherTest, CutsLargeGathersIntoCalls) {
  StartServers(1);
  server(0).HoldAll();
  std::atomic<uint64_t> largest{0};
  server(0).OnGather([&](const FakeTableServer::Gather& gather) {
    largest = std::max<uint64_t>(largest, gather.rows.size());
    return absl::OkStatus();
  });
  Connect({.max_rows_per_call = 10});
  auto buffers = GatherBuffers::Random(400, 1);
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  ASSERT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_LE(largest, 10u);
  EXPECT_EQ(gather->stats().calls, (gather->stats().unique_rows + 9) / 10);
}

TEST_F(GatherTest, NothingIsAskedForNothing) {
  StartServers(1);
  Connect();
  EXPECT_TRUE(client_->Gather({}, Later()).ok());
  GatherBuffers buffers({});
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_EQ(server(0).gathers_started(), 0u);
}

TEST_F(GatherTest, BadInputIsRefusedWithoutACall) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({5, 1000});
  EXPECT_EQ(ReasonOf(client_->Gather(buffers.Layers(), Later())),
            ErrorReason::kRowOutOfRange);
  EXPECT_EQ(ReasonOf(client_->Gather({{LayerId{2}, {}, {}}}, Later())),
            ErrorReason::kUnknownLayer);
  EXPECT_EQ(server(0).gathers_started(), 0u);
  EXPECT_TRUE(buffers.Poisoned());
}

TEST_F(GatherTest, DoneIsCalledOnceWithWhatWaitReturns) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  for (const RowId row : {RowId{5}, RowId{1000}}) {
    GatherBuffers buffers({row});
    std::atomic<int> calls{0};
    absl::StatusCode code{};
    std::thread::id thread;
    {
      const auto gather = client_->Prefetch(
          buffers.Layers(), Later(), [&](const absl::Status& status) {
            ++calls;
            code = status.code();
            thread = std::this_thread::get_id();
          });
      EXPECT_EQ(gather->Wait().code(), row == 5
                                           ? absl::StatusCode::kOk
                                           : absl::StatusCode::kOutOfRange);
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(code,
              row == 5 ? absl::StatusCode::kOk : absl::StatusCode::kOutOfRange);
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST_F(GatherTest, TheHandleMayBeDroppedInDone) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({5});
  std::unique_ptr<GatherHandle> gather;
  Notification stored;
  Notification dropped;
  gather = client_->Prefetch(buffers.Layers(), Later(),
                             [&](const absl::Status& status) {
                               EXPECT_TRUE(status.ok());
                               stored.Wait();
                               gather.reset();
                               dropped.Notify();
                             });
  stored.Notify();
  dropped.Wait();
  EXPECT_TRUE(buffers.Right());
}

TEST_F(GatherTest, GathersInFlightAreBounded) {
  StartServers(1);
  server(0).HoldAll();
  server(0).SwallowGathers(true);
  Connect({.max_gathers_in_flight = 2});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  GatherBuffers one({1});
  GatherBuffers two({2});
  GatherBuffers three({3});
  const auto first = client_->Prefetch(one.Layers(), Later(), nullptr);
  const auto second = client_->Prefetch(two.Layers(), Later(), nullptr);
  EXPECT_TRUE(
      absl::IsResourceExhausted(client_->Gather(three.Layers(), Later())));
  server(0).SwallowGathers(false);
  server(0).ReleaseSwallowed();
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(client_->Gather(three.Layers(), Later()).ok());
}

TEST_F(GatherTest, ManyThreadsMayGather) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  Connect({.max_rows_per_call = 64});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 25; ++i) {
        auto buffers = GatherBuffers::Random(200, t * 100 + i);
        const absl::Status status = client_->Gather(buffers.Layers(), Later());
        if (status.ok() && buffers.Right()) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

}  // namespace
}  // namespace engram
