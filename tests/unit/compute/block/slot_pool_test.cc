#include "compute/block/slot_pool.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/eventually.h"

namespace engram {
namespace {

using ::engram::test::Soon;

struct FakeSlot {
  explicit FakeSlot(int id) : id(id) {}
  const int id;
  std::atomic<int> users{0};
};

std::vector<std::unique_ptr<FakeSlot>> Slots(int count) {
  std::vector<std::unique_ptr<FakeSlot>> slots;
  for (int i = 0; i < count; ++i)
    slots.push_back(std::make_unique<FakeSlot>(i));
  return slots;
}

TEST(SlotPoolTest, EachSlotHasOneUserAndTheLastBackIsTheNextOut) {
  SlotPool<FakeSlot> pool(Slots(2));
  auto a = pool.Acquire(absl::InfinitePast());
  std::optional<SlotPool<FakeSlot>::Lease> b =
      *pool.Acquire(absl::InfinitePast());
  ASSERT_TRUE(a.ok());
  EXPECT_NE((*a)->id, (*b)->id);
  EXPECT_EQ(pool.in_use(), 2);
  const int id = (*b)->id;
  b.reset();
  EXPECT_EQ(pool.in_use(), 1);
  EXPECT_EQ((*pool.Acquire(absl::InfinitePast()))->id, id);
}

TEST(SlotPoolTest, AMovedLeaseReturnsItsSlotOnce) {
  SlotPool<FakeSlot> pool(Slots(1));
  {
    SlotPool<FakeSlot>::Lease a = *pool.Acquire(absl::InfinitePast());
    const SlotPool<FakeSlot>::Lease b = std::move(a);
    EXPECT_EQ((*b).id, 0);
    EXPECT_EQ(pool.in_use(), 1);
  }
  EXPECT_EQ(pool.in_use(), 0);
}

TEST(SlotPoolTest, SaysHowManyThereAreWhenNoneComesBackInTime) {
  SlotPool<FakeSlot> pool(Slots(3));
  std::vector<SlotPool<FakeSlot>::Lease> all;
  for (int i = 0; i < 3; ++i) all.push_back(*pool.Acquire(Soon()));
  const auto status =
      pool.Acquire(absl::Now() + absl::Milliseconds(1)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "all 3 slots of the device stayed in use");
  EXPECT_EQ(pool.size(), 3);
}

TEST(SlotPoolTest, AWaiterGetsTheSlotThatComesBack) {
  SlotPool<FakeSlot> pool(Slots(1));
  std::optional<SlotPool<FakeSlot>::Lease> held = *pool.Acquire(Soon());
  Notification waiting;
  bool got = false;
  std::thread waiter([&] {
    waiting.Notify();
    got = pool.Acquire(Soon()).ok();
  });
  waiting.Wait();
  held.reset();
  waiter.join();
  EXPECT_TRUE(got);
}

TEST(SlotPoolTest, ManyUsers) {
  SlotPool<FakeSlot> pool(Slots(2));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto slot = pool.Acquire(Soon());
        ASSERT_TRUE(slot.ok()) << slot.status();
        ASSERT_EQ((*slot)->users.fetch_add(1), 0);
        (*slot)->users.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.in_use(), 0);
}

}  // namespace
}  // namespace engram
