#include "engram_client/rpc/live_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace engram {
namespace {

TEST(LiveCountTest, NothingToWaitForAtFirst) { LiveCount().WaitForNone(); }

TEST(LiveCountTest, WaitsForEveryToken) {
  for (int round = 0; round < 100; ++round) {
    LiveCount count;
    std::atomic<int> dropped{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&dropped, token = count.Take()]() mutable {
        ++dropped;
        token.reset();
      });
    }
    count.WaitForNone();
    EXPECT_EQ(dropped, 4);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(LiveCountTest, TheLastTokenMayOutliveIt) {
  LiveCount::Token token;
  {
    LiveCount count;
    token = count.Take();
  }
  token.reset();
}

}  // namespace
}  // namespace engram
