#include "engram_client/rpc/retry_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace engram {
namespace {

TEST(RetryBudgetTest, ABurstAndThenAShareOfTheFirstCalls) {
  RetryBudget budget({.share = 0.05, .burst = 100});
  EXPECT_EQ(budget.burst(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.TrySpend(1));
  EXPECT_FALSE(budget.TrySpend(1));
  EXPECT_EQ(budget.tokens(), 0u);
  for (int i = 0; i < 19; ++i) budget.OnFirstCall();
  EXPECT_FALSE(budget.TrySpend(1));
  budget.OnFirstCall();
  EXPECT_TRUE(budget.TrySpend(1));
  EXPECT_FALSE(budget.TrySpend(1));
}

TEST(RetryBudgetTest, IsNeverFullerThanTheBurst) {
  RetryBudget budget({.share = 0.3, .burst = 10});
  for (int i = 0; i < 1000; ++i) budget.OnFirstCall();
  EXPECT_EQ(budget.tokens(), 10u);
  EXPECT_TRUE(budget.TrySpend(1));
  for (int i = 0; i < 1000; ++i) budget.OnFirstCall();
  EXPECT_EQ(budget.tokens(), 10u);
}

TEST(RetryBudgetTest, HalfMayBeLeft) {
  RetryBudget budget({.share = 0.05, .burst = 100});
  EXPECT_FALSE(budget.TrySpendUpperHalf(51));  // all or none
  EXPECT_TRUE(budget.TrySpendUpperHalf(49));
  EXPECT_TRUE(budget.TrySpendUpperHalf(1));
  EXPECT_FALSE(budget.TrySpendUpperHalf(1));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(budget.TrySpend(1));
  EXPECT_FALSE(budget.TrySpend(1));
}

TEST(RetryBudgetTest, ManyThreadsSpendNoTokenTwice) {
  RetryBudget budget({.share = 0.05, .burst = 1000});
  std::atomic<int> spent{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        budget.OnFirstCall();
        spent += budget.TrySpend(1) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(spent, 1000 + 4000 / 20);
  EXPECT_GE(spent, 1000);
}

}  // namespace
}  // namespace engram
