// Gathers of a client that keeps rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/testing/metric_values.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

class RowCacheClientTest : public FakeCluster {
 protected:
  static constexpr uint64_t kCacheBytes = 1 << 20;

  void ConnectToOne() {
    StartServers(1);
    server(0).HoldAll();
    Connect({.row_cache_bytes = kCacheBytes, .metrics = registry_});
  }
  GatherStats Gather(GatherBuffers& buffers) {
    buffers.Poison();
    const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
    EXPECT_TRUE(gather->Wait().ok()) << gather->Wait();
    EXPECT_TRUE(buffers.Right());
    return gather->stats();
  }
  double Metric(const std::string& name) const {
    return test::MetricValues(*registry_)
        .at("engram_client_row_cache_" + name + "{}");
  }

  std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>();
};

TEST_F(RowCacheClientTest, TheSecondGatherOfTheSameRowsAsksNobody) {
  ConnectToOne();
  GatherBuffers buffers({5, 999, 5, 0, 5}, {5, 17});
  EXPECT_EQ(Gather(buffers).cached_rows, 0u);
  const uint64_t asked = server(0).gathers_started();
  const GatherStats stats = Gather(buffers);
  EXPECT_EQ(server(0).gathers_started(), asked);
  EXPECT_EQ(stats.rows, 7u);
  EXPECT_EQ(stats.unique_rows, 5u);
  EXPECT_EQ(stats.cached_rows, 5u);
  EXPECT_EQ(stats.bytes_received, 0u);
  EXPECT_EQ(stats.calls, 0u);
  EXPECT_EQ(Metric("hits_total"), 5);
  EXPECT_EQ(Metric("misses_total"), 5);
  EXPECT_EQ(Metric("inserts_total"), 5);
  EXPECT_EQ(Metric("evictions_total"), 0);
  EXPECT_EQ(Metric("limit_bytes"), kCacheBytes);
  EXPECT_GT(Metric("bytes"), kCacheBytes / 2);
  EXPECT_LE(Metric("bytes"), kCacheBytes);
}

TEST_F(RowCacheClientTest, OnlyTheOthersAreAskedFor) {
  ConnectToOne();
  GatherBuffers first({1, 2, 3}, {7});
  Gather(first);
  std::vector<std::pair<LayerId, RowId>> asked;
  server(0).OnGather([&](const FakeTableServer::Gather& gather) {
    asked = gather.rows;
    return absl::OkStatus();
  });
  // Row 7 of layer 1 and row 1 of layer 14 are others than those before.
  GatherBuffers second({9, 3, 7, 1, 9}, {7, 1});
  const GatherStats stats = Gather(second);
  EXPECT_EQ(stats.cached_rows, 3u);
  EXPECT_EQ(stats.bytes_received, 3 * FakeTable::kRowBytes);
  EXPECT_THAT(
      asked, ::testing::UnorderedElementsAre(std::pair{LayerId{1}, RowId{9}},
                                             std::pair{LayerId{1}, RowId{7}},
                                             std::pair{LayerId{14}, RowId{1}}));
}

TEST_F(RowCacheClientTest, RandomGathersAreRight) {
  StartServers(3);
  for (uint32_t p = 0; p < FakeTable{}.partition_count(); ++p) {
    server(p % 3).Add(LayerId{1}, {p});
    server((p + 1) % 3).Add(LayerId{14}, {p});
  }
  // Of fewer rows than the table has: rows come and go.
  Connect({.max_rows_per_call = 50, .row_cache_bytes = 60'000});
  uint64_t cached = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    auto buffers = GatherBuffers::Random(300, seed);
    cached += Gather(buffers).cached_rows;
  }
  EXPECT_GT(cached, 0u);
}

TEST_F(RowCacheClientTest, ManyThreadsGetTheirRows) {
  StartServers(2);
  for (size_t i = 0; i < 2; ++i) server(i).HoldAll();
  Connect({.row_cache_bytes = 60'000});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 20; ++i) {
        auto buffers = GatherBuffers::Random(100, t * 100 + i);
        Gather(buffers);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RowCacheClientTest, AFailedGatherLeavesNothingWrong) {
  ConnectToOne();
  std::atomic<int> failures{1};
  server(0).OnGather([&](const FakeTableServer::Gather&) {
    return failures-- > 0 ? MakeError(ErrorReason::kTooLarge, "too large")
                          : absl::OkStatus();
  });
  GatherBuffers buffers({5, 6});
  EXPECT_FALSE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_EQ(Metric("inserts_total"), 0);
  EXPECT_EQ(Gather(buffers).cached_rows, 0u);
  EXPECT_EQ(Gather(buffers).cached_rows, 2u);
}

TEST_F(RowCacheClientTest, DoneRunsOnAThreadOfTheClient) {
  ConnectToOne();
  GatherBuffers buffers({5});
  Gather(buffers);
  std::thread::id thread;
  Notification told;
  const auto gather = client_->Prefetch(buffers.Layers(), Later(),
                                        [&](const absl::Status& status) {
                                          EXPECT_TRUE(status.ok());
                                          thread = std::this_thread::get_id();
                                          told.Notify();
                                        });
  ASSERT_TRUE(told.WaitUntil(Later()));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(gather->stats().calls, 0u);
}

TEST_F(RowCacheClientTest, WhatIsThereIsThereAtOnceWithoutADone) {
  ConnectToOne();
  GatherBuffers buffers({5});
  Gather(buffers);
  EXPECT_TRUE(client_->Prefetch(buffers.Layers(), Later(), nullptr)->done());
}

TEST_F(RowCacheClientTest, APastDeadlineIsOneAlsoForWhatIsThere) {
  ConnectToOne();
  GatherBuffers buffers({5});
  Gather(buffers);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client_->Gather(buffers.Layers(), In(-absl::Seconds(1)))));
}

TEST_F(RowCacheClientTest, WithoutOneEveryGatherAsks) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({5});
  Gather(buffers);
  const uint64_t asked = server(0).gathers_started();
  EXPECT_EQ(Gather(buffers).cached_rows, 0u);
  EXPECT_EQ(server(0).gathers_started(), asked + 1);
}

TEST_F(RowCacheClientTest, ABudgetWithoutARowIsRefused) {
  StartServers(1);
  server(0).HoldAll();
  EXPECT_EQ(TryConnect({.row_cache_bytes = 100}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace engram
