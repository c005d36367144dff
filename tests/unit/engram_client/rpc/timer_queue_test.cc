#include "engram_client/rpc/timer_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"

namespace engram {
namespace {

TEST(TimerQueueTest, RunsInTheOrderOfTime) {
  TimerQueue timers;
  Notification done;
  std::vector<int> order;  // used on the timer thread only
  const absl::Time now = absl::Now();
  timers.Schedule(now + absl::Milliseconds(20), [&] {
    order.push_back(3);
    done.Notify();
  });
  timers.Schedule(now + absl::Milliseconds(5), [&] { order.push_back(2); });
  timers.Post([&] { order.push_back(1); });
  done.Wait();
  EXPECT_GE(absl::Now(), now + absl::Milliseconds(19));  // clocks differ
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
}

// Seconds since 1970 as somebody sets them.
std::atomic<int64_t> wall_seconds{1'000'000};
absl::Time WallClock() { return absl::FromUnixSeconds(wall_seconds); }

TEST(TimerQueueTest, AWallClockThatIsSetBackDelaysNothing) {
  TimerQueue timers(WallClock);
  Notification done;
  timers.Schedule(WallClock() + absl::Milliseconds(50), [&] { done.Notify(); });
  wall_seconds -= 3600;
  EXPECT_TRUE(done.WaitUntil(absl::Now() + absl::Seconds(30)));
}

TEST(TimerQueueTest, CancelledTasksDoNotRun) {
  TimerQueue timers;
  Notification cancelled;
  timers.Post([&] { cancelled.Wait(); });
  bool ran = false;
  const auto timer = timers.Schedule(absl::Now(), [&] { ran = true; });
  timers.Cancel(timer);
  timers.Cancel(timer);
  timers.Cancel({});
  cancelled.Notify();
  Notification done;
  timers.Schedule(absl::Now(), [&] { done.Notify(); });
  done.Wait();
  EXPECT_FALSE(ran);
}

// The thread finds it at one of its polls, or is woken: in time either way.
TEST(TimerQueueTest, ShortTimersAmongManyThatAreCancelledAreInTime) {
  TimerQueue timers;
  for (int i = 0; i < 200; ++i) {
    const absl::Duration delay = absl::Microseconds(300 * (1 + i % 10));
    const absl::Time when = SteadyNow() + delay;
    // On a busy machine it may have run before.
    timers.Cancel(timers.ScheduleSteady(when, [] {}));
    if (i % 20 != 0) continue;
    Notification done;
    absl::Time ran;
    timers.ScheduleSteady(when, [&] {
      ran = SteadyNow();
      done.Notify();
    });
    done.Wait();
    EXPECT_GE(ran, when);
    EXPECT_LT(ran, when + absl::Seconds(5));  // the machine may be busy
  }
}

TEST(TimerQueueTest, KnowsItsThread) {
  TimerQueue timers;
  Notification done;
  bool on_timer_thread = false;
  timers.Post([&] {
    on_timer_thread = timers.OnTimerThread();
    done.Notify();
  });
  done.Wait();
  EXPECT_TRUE(on_timer_thread);
  EXPECT_FALSE(timers.OnTimerThread());
}

TEST(TimerQueueTest, StopDropsTasksAndWhatTheyHold) {
  TimerQueue timers;
  auto held = std::make_shared<int>(1);
  timers.Schedule(absl::InfiniteFuture(), [held] {});
  timers.Stop();
  EXPECT_EQ(held.use_count(), 1);
  timers.Post([held] {});
  EXPECT_EQ(held.use_count(), 1);
}

TEST(TimerQueueTest, ManyThreadsMaySchedule) {
  TimerQueue timers;
  int ran = 0;  // used on the timer thread only
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        timers.Post([&] { ++ran; });
        timers.Cancel(timers.Schedule(absl::InfiniteFuture(), [] {}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Notification done;
  timers.Post([&] { done.Notify(); });
  done.Wait();
  EXPECT_EQ(ran, 2000);
}

}  // namespace
}  // namespace engram
