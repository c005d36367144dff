#include "core/base/notification.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace engram {
namespace {

TEST(NotificationTest, NotifiedOnceForGood) {
  Notification notification;
  EXPECT_FALSE(notification.HasBeenNotified());
  EXPECT_FALSE(notification.WaitUntil(absl::Now() - absl::Seconds(1)));
  EXPECT_FALSE(notification.WaitUntil(absl::Now() + absl::Milliseconds(1)));
  notification.Notify();
  notification.Notify();
  EXPECT_TRUE(notification.HasBeenNotified());
  EXPECT_TRUE(notification.WaitUntil(absl::InfinitePast()));
  notification.Wait();
}

TEST(NotificationTest, WakesEveryWaiterAndShowsWhatWasWritten) {
  Notification notification;
  int written = 0;  // published by Notify
  std::atomic<int> seen{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&, i] {
      const absl::Time deadline =
          i % 2 == 0 ? absl::InfiniteFuture() : absl::Now() + absl::Seconds(60);
      if (notification.WaitUntil(deadline) && written == 5) ++seen;
    });
  }
  written = 5;
  notification.Notify();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(seen, 8);
}

}  // namespace
}  // namespace engram
