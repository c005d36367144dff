#include "core/rpc/queue_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/notification.h"

namespace engram {
namespace {

std::unique_ptr<QueueLoop> MakeLoop(QueueLoop::Options options) {
  return std::make_unique<QueueLoop>(std::make_unique<grpc::CompletionQueue>(),
                                     std::move(options));
}

// An alarm that rings at once.
class Ring final : public QueueEvent {
 public:
  void Start(QueueLoop& loop) {
    alarm_.Set(&loop.queue(), gpr_time_0(GPR_CLOCK_MONOTONIC), tag());
  }
  void OnQueueEvent(bool) override {
    if (loop_to_ask != nullptr) on_loop = loop_to_ask->OnLoopThread();
    rung.Notify();
  }

  Notification rung;
  const QueueLoop* loop_to_ask = nullptr;
  bool on_loop = false;

 private:
  grpc::Alarm alarm_;
};

TEST(QueueLoopTest, TellsEventsOnItsThreads) {
  for (const absl::Duration spin :
       {absl::ZeroDuration(), absl::Milliseconds(1)}) {
    const auto loop = MakeLoop({.thread_count = 2, .spin = spin});
    Ring ring;
    ring.loop_to_ask = loop.get();
    ring.Start(*loop);
    ring.rung.Wait();
    EXPECT_TRUE(ring.on_loop);
    EXPECT_FALSE(loop->OnLoopThread());
  }
}

TEST(QueueLoopTest, RunsEveryDeferredTaskAlsoWhenItStops) {
  constexpr int kTasks = 1000;
  std::atomic<int> run{0};
  const auto loop = MakeLoop({.thread_count = 2});
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(loop->Defer([&] { run.fetch_add(1); }));
  }
  loop->Stop();
  EXPECT_EQ(run.load(), kTasks);
  EXPECT_FALSE(loop->Defer([] {}));
}

TEST(QueueLoopTest, ATaskMayDeferTheNext) {
  const auto loop = MakeLoop({.thread_count = 1});
  Notification done;
  ASSERT_TRUE(
      loop->Defer([&] { EXPECT_TRUE(loop->Defer([&] { done.Notify(); })); }));
  done.Wait();
}

// Defers tasks of both kinds on the loop's only thread, which then runs them;
// the order in which it did, urgent ones as negative numbers.
std::vector<int> OrderOf(int tasks, int urgent_tasks) {
  std::vector<int> order;
  const auto loop = MakeLoop({.thread_count = 1});
  Notification done;
  const auto add = [&](int number) {
    order.push_back(number);
    if (order.size() == static_cast<size_t>(tasks + urgent_tasks)) {
      done.Notify();
    }
  };
  EXPECT_TRUE(loop->Defer([&] {
    for (int i = 1; i <= tasks; ++i) {
      EXPECT_TRUE(loop->Defer([&add, i] { add(i); }));
    }
    for (int i = 1; i <= urgent_tasks; ++i) {
      EXPECT_TRUE(loop->DeferUrgent([&add, i] { add(-i); }));
    }
  }));
  done.Wait();
  return order;
}

TEST(QueueLoopTest, UrgentTasksGoFirst) {
  EXPECT_EQ(OrderOf(3, 3), (std::vector<int>{-1, -2, -3, 1, 2, 3}));
}

TEST(QueueLoopTest, UrgentTasksHoldOthersUpForAWhileOnly) {
  const std::vector<int> order = OrderOf(1, 300);
  const auto at = std::find(order.begin(), order.end(), 1) - order.begin();
  EXPECT_GT(at, 10);
  EXPECT_LT(at, 100);
}

TEST(QueueLoopTest, UrgentTasksAreRunWhenItStopsAndRefusedAfterwards) {
  std::atomic<int> run{0};
  const auto loop = MakeLoop({.thread_count = 2});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(loop->DeferUrgent([&] { run.fetch_add(1); }));
  }
  loop->Stop();
  EXPECT_EQ(run.load(), 100);
  EXPECT_FALSE(loop->DeferUrgent([] {}));
}

TEST(QueueLoopTest, StopWaitsUntilNobodyHoldsTheQueue) {
  const auto loop = MakeLoop({.thread_count = 1});
  std::optional<QueueLoop::Hold> hold(*loop);
  std::optional<QueueLoop::Hold> copy(*hold);
  hold.reset();
  std::thread stop([&] { loop->Stop(); });
  // Refused from the moment on that Stop waits.
  while (loop->Defer([] {})) {
  }
  // The queue is open all the same.
  Ring ring;
  ring.Start(*loop);
  ring.rung.Wait();
  copy.reset();
  stop.join();
}

TEST(QueueLoopTest, StopIsIdempotent) {
  const auto loop = MakeLoop({.thread_count = 1});
  loop->Stop();
  loop->Stop();
}

}  // namespace
}  // namespace engram
