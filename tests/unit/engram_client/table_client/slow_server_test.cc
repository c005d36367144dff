#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

// Two servers that hold everything.
class SlowServerTest : public FakeCluster {
 protected:
  void ConnectToTwo() {
    StartServers(2);
    for (size_t i = 0; i < 2; ++i) server(i).HoldAll();
    Connect({.first_hedge_delay = absl::Milliseconds(5), .metrics = registry_});
    ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
    // So that both are known to the client.
    while (client_->servers()[0].partitions_held == 0 ||
           client_->servers()[1].partitions_held == 0) {
      std::this_thread::yield();
    }
  }
  void ExpectGathersToSucceed(int count) {
    for (int i = 0; i < count; ++i) {
      auto buffers = GatherBuffers::Random(20, static_cast<uint32_t>(i));
      const absl::Status status = client_->Gather(buffers.Layers(), Later());
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(buffers.Right());
    }
  }

  const std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>();
};

TEST_F(SlowServerTest, HealthyServersGetHardlyAnyExtraCalls) {
  ConnectToTwo();
  ExpectGathersToSucceed(500);
  const TableClient::Stats stats = client_->stats();
  EXPECT_GE(stats.first_calls, 500u);
  EXPECT_EQ(stats.retries, 0u);
  EXPECT_EQ(stats.ejections, 0u);
  // A share of the first calls, and half of the burst.
  EXPECT_LE(stats.hedges, stats.first_calls / 20 + 50);
}

TEST_F(SlowServerTest, AServerThatDoesNotAnswerIsLeftOutAndComesBack) {
  ConnectToTwo();
  server(0).SwallowGathers(true);
  while (client_->stats().servers_ejected == 0) ExpectGathersToSucceed(1);
  const uint64_t asked = server(0).gathers_started();
  EXPECT_GE(asked, 20u);
  EXPECT_EQ(client_->stats().ejections, 1u);
  EXPECT_GE(client_->stats().hedges_won, 20u);
  ExpectGathersToSucceed(50);
  EXPECT_LE(server(0).gathers_started(), asked + 2);  // a probe, if so much
  server(0).SwallowGathers(false);
  server(0).ReleaseSwallowed();
  while (client_->stats().servers_ejected > 0) ExpectGathersToSucceed(1);
  EXPECT_GT(server(0).gathers_started(), asked + 30);
}

TEST_F(SlowServerTest, ManyGathersLoseNothingToAServerThatStopsAndGoes) {
  ConnectToTwo();
  std::atomic<bool> stop{false};
  std::thread chaos([&] {
    while (!stop) {
      server(0).SwallowGathers(true);
      absl::SleepFor(absl::Milliseconds(20));
      server(0).SwallowGathers(false);
      server(0).ReleaseSwallowed();
      absl::SleepFor(absl::Milliseconds(5));
    }
  });
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] { ExpectGathersToSucceed(100); });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  chaos.join();
}

TEST_F(SlowServerTest, AHandleThatGoesEndsTheHedgeToo) {
  ConnectToTwo();
  server(0).SwallowGathers(true);
  server(1).SwallowGathers(true);
  GatherBuffers buffers({1, 2});
  {
    const auto gather =
        client_->Prefetch(buffers.Layers(), absl::InfiniteFuture(), nullptr);
    while (server(0).gathers_started() + server(1).gathers_started() < 2) {
      std::this_thread::yield();
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    server(i).SwallowGathers(false);
    server(i).ReleaseSwallowed();
  }
  client_.reset();
  EXPECT_TRUE(buffers.Poisoned());
  EXPECT_EQ(server(0).gathers_open() + server(1).gathers_open(), 0u);
}

TEST_F(SlowServerTest, MetricsHaveEveryBoundBesideItsLimit) {
  ConnectToTwo();
  ExpectGathersToSucceed(3);
  std::set<std::string> names;
  for (const auto& family : registry_->Collect()) {
    names.insert(family.name);
    if (family.name == "engram_client_gathers_total") {
      for (const auto& metric : family.metric) {
        EXPECT_EQ(metric.counter.value, metric.label[0].value == "OK" ? 3 : 0);
      }
    }
    if (family.name == "engram_client_gathers_in_flight") {
      EXPECT_EQ(family.metric[0].gauge.value, 0);
    }
    if (family.name == "engram_client_gathers_in_flight_limit") {
      EXPECT_EQ(family.metric[0].gauge.value, 1024);
    }
  }
  for (const std::string name : {"budget_tokens", "gathers_in_flight"}) {
    EXPECT_EQ(names.count("engram_client_" + name), 1u) << name;
    EXPECT_EQ(names.count("engram_client_" + name + "_limit"), 1u) << name;
  }
  EXPECT_EQ(names.count("engram_client_hedge_buffer_bytes"), 1u);
  EXPECT_EQ(names.count("engram_client_hedge_buffer_limit_bytes"), 1u);
}

}  // namespace
}  // namespace engram
