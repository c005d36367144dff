#include "engram_client/ctl/load_slots.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::Optional;

TEST(LoadSlotsTest, TheSlotFreedLastComesFirst) {
  LoadSlots slots(3);
  EXPECT_EQ(slots.Take(), 0);
  EXPECT_EQ(slots.Take(), 1);
  EXPECT_EQ(slots.Take(), 2);
  slots.Free(1);
  slots.Free(0);
  EXPECT_EQ(slots.Take(), 0);
  EXPECT_EQ(slots.Take(), 1);
}

TEST(LoadSlotsTest, ChecksComeInTheOrderQueued) {
  LoadSlots slots(2);
  for (int round = 0; round < 5; ++round) {
    slots.QueueCheck(1);
    slots.QueueCheck(0);
    EXPECT_THAT(slots.NextToCheck(), Optional(1));
    EXPECT_THAT(slots.NextToCheck(), Optional(0));
  }
  slots.QueueCheck(1);
  slots.Close();
  EXPECT_THAT(slots.NextToCheck(), Optional(1));
  EXPECT_EQ(slots.NextToCheck(), std::nullopt);
}

TEST(LoadSlotsTest, EverySlotGoesRoundBetweenThreads) {
  constexpr size_t kSlots = 4;
  constexpr int kRounds = 2000;
  LoadSlots slots(kSlots);
  std::vector<std::thread> checkers;
  checkers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    checkers.emplace_back([&slots] {
      while (const auto slot = slots.NextToCheck()) slots.Free(*slot);
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kSlots; ++i) slots.QueueCheck(slots.Take());
    slots.WaitUntilAllFree();
  }
  slots.Close();
  for (std::thread& checker : checkers) checker.join();
}

}  // namespace
}  // namespace engram::ctl
