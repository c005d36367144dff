#include "engram_client/rpc/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace engram {
namespace {

TEST(GateTest, WhoClosesAnEmptyOneIsTheLast) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  EXPECT_FALSE(gate.Leave());
  EXPECT_TRUE(gate.Close());
  EXPECT_FALSE(gate.Enter());
}

TEST(GateTest, ElseTheLastToLeaveIs) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  ASSERT_TRUE(gate.Enter());
  EXPECT_FALSE(gate.Close());
  EXPECT_FALSE(gate.Enter());
  EXPECT_FALSE(gate.Leave());
  EXPECT_TRUE(gate.Leave());
}

TEST(GateTest, ExactlyOneIsTheLastAndSeesWhatTheOthersDid) {
  for (int round = 0; round < 500; ++round) {
    Gate gate;
    std::vector<int> written(4);  // not atomic: the gate orders it
    std::atomic<int> entered{0};
    std::atomic<int> last{0};
    int sum = 0;
    const auto be_last = [&] {
      ++last;
      for (const int count : written) sum += count;
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20 && gate.Enter(); ++i) {
          ++entered;
          ++written[t];
          if (gate.Leave()) be_last();
        }
      });
    }
    if (gate.Close()) be_last();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(last, 1);
    EXPECT_EQ(sum, entered);
  }
}

}  // namespace
}  // namespace engram
