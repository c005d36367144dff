#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

using CancelTest = FakeCluster;

TEST_F(CancelTest, EndsAtOnceAndGivesUpTheCalls) {
  StartServers(2);
  server(0).HoldAll();
  server(1).HoldAll();
  server(0).SwallowGathers(true);
  server(1).SwallowGathers(true);
  Connect({.max_rows_per_call = 5});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  auto buffers = GatherBuffers::Random(100, 1);
  int done = 0;
  auto gather = client_->Prefetch(buffers.Layers(), absl::InfiniteFuture(),
                                  [&](const absl::Status& status) {
                                    EXPECT_TRUE(absl::IsCancelled(status));
                                    ++done;
                                  });
  EXPECT_FALSE(gather->done());
  gather->Cancel();
  gather->Cancel();
  EXPECT_TRUE(absl::IsCancelled(gather->Wait()));
  gather.reset();
  EXPECT_EQ(done, 1);
  client_.reset();
  EXPECT_EQ(server(0).gathers_open() + server(1).gathers_open(), 0u);
  // Calls that stood in line were never started.
  EXPECT_LE(server(0).gathers_started() + server(1).gathers_started(), 16u);
}

TEST_F(CancelTest, AGatherThatWaitsForAServerCanBeCancelled) {
  StartServers(1);
  Connect();
  GatherBuffers buffers({1});
  const auto gather =
      client_->Prefetch(buffers.Layers(), absl::InfiniteFuture(), nullptr);
  gather->Cancel();
  EXPECT_TRUE(absl::IsCancelled(gather->Wait()));
}

TEST_F(CancelTest, AFinishedGatherStaysAsItIs) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({1});
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  ASSERT_TRUE(gather->Wait().ok());
  gather->Cancel();
  EXPECT_TRUE(gather->Wait().ok());
}

TEST_F(CancelTest, TheClientEndsItsGathersAndHandlesMayStay) {
  StartServers(1);
  server(0).HoldAll();
  server(0).SwallowGathers(true);
  Connect();
  GatherBuffers buffers({1});
  std::atomic<int> done{0};
  const auto gather =
      client_->Prefetch(buffers.Layers(), absl::InfiniteFuture(),
                        [&](const absl::Status&) { ++done; });
  client_.reset();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(absl::IsCancelled(gather->Wait()));
  gather->Cancel();
}

// Both ends are told by the timer thread; the second stands in line behind the
// `done` that waits for it.
TEST_F(CancelTest, ADoneMayDropAnotherGatherThatWasRefused) {
  StartServers(1);
  Connect();
  GatherBuffers no_such_row({5000});
  Notification both_made;
  std::unique_ptr<GatherHandle> second;
  int second_done = 0;
  auto first = client_->Prefetch(no_such_row.Layers(), Later(),
                                 [&](const absl::Status&) {
                                   both_made.Wait();
                                   second.reset();
                                   EXPECT_EQ(second_done, 1);
                                 });
  second = client_->Prefetch(no_such_row.Layers(), Later(),
                             [&](const absl::Status&) { ++second_done; });
  both_made.Notify();
  first.reset();
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(second_done, 1);
}

TEST_F(CancelTest, ADoneMayDropAnotherGatherThatWasCancelled) {
  StartServers(1);
  Connect();
  GatherBuffers no_such_row({5000});
  Notification both_cancelled;
  const auto blocker =
      client_->Prefetch(no_such_row.Layers(), Later(),
                        [&](const absl::Status&) { both_cancelled.Wait(); });
  // Nobody holds the row: they wait until they are cancelled.
  GatherBuffers buffers({1});
  std::unique_ptr<GatherHandle> gathers[2];
  int done[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    gathers[i] = client_->Prefetch(buffers.Layers(), absl::InfiniteFuture(),
                                   [&, i](const absl::Status& status) {
                                     EXPECT_TRUE(absl::IsCancelled(status))
                                         << status;
                                     ++done[i];
                                     gathers[1 - i].reset();
                                   });
  }
  for (const auto& gather : gathers) gather->Cancel();
  both_cancelled.Notify();
  client_.reset();
  EXPECT_EQ(done[0], 1);
  EXPECT_EQ(done[1], 1);
}

TEST_F(CancelTest, NothingWritesOnceTheHandleIsGone) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  Connect({.max_rows_per_call = 16});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  std::mt19937 random(11);
  int cancelled = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    auto buffers = GatherBuffers::Random(200, round);
    int done = 0;
    {
      auto gather = client_->Prefetch(buffers.Layers(), Later(),
                                      [&](const absl::Status&) { ++done; });
      // Any moment between the first call and well after the last.
      const absl::Time until = In(absl::Microseconds(random() % 1500));
      while (absl::Now() < until && !gather->done()) {
      }
      if (round % 2 == 0) gather->Cancel();
      if (round % 4 == 0 && !gather->Wait().ok()) ++cancelled;
    }
    EXPECT_EQ(done, 1);
    buffers.Poison();
    // What is still under way at the servers meets the poison.
    GatherBuffers other({1, 500, 999});
    ASSERT_TRUE(client_->Gather(other.Layers(), Later()).ok());
    ASSERT_TRUE(buffers.Poisoned());
  }
  EXPECT_GT(cancelled, 0);
}

TEST_F(CancelTest, ManyThreadsMayCancelOneGather) {
  StartServers(1);
  server(0).HoldAll();
  Connect({.max_rows_per_call = 16});
  for (uint32_t round = 0; round < 50; ++round) {
    auto buffers = GatherBuffers::Random(100, round);
    std::atomic<int> done{0};
    auto gather = client_->Prefetch(buffers.Layers(), Later(),
                                    [&](const absl::Status&) { ++done; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        gather->Cancel();
        const absl::Status status = gather->Wait();
        EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
      });
    }
    for (std::thread& thread : threads) thread.join();
    gather.reset();
    EXPECT_EQ(done, 1);
  }
}

}  // namespace
}  // namespace engram
