#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/notification.h"
#include "tests/testing/eventually.h"

namespace engram {
namespace {

using ::engram::test::Soon;

TEST(ThreadPoolTest, RunsTasksOnItsThreads) {
  ThreadPool pool({.thread_count = 2});
  EXPECT_EQ(pool.thread_count(), 2U);
  Notification ran;
  std::thread::id on;
  auto owned = std::make_unique<int>(7);  // tasks may own what cannot be copied
  int value = 0;
  ASSERT_TRUE(pool.TryAdd([&, owned = std::move(owned)] {
    value = *owned;
    on = std::this_thread::get_id();
    ran.Notify();
  }));
  ASSERT_TRUE(ran.WaitUntil(Soon()));
  EXPECT_EQ(value, 7);
  EXPECT_NE(on, std::this_thread::get_id());
}

TEST(ThreadPoolTest, AtLeastOneThread) {
  ThreadPool pool({});
  EXPECT_GE(pool.thread_count(), 1U);
}

TEST(ThreadPoolTest, FullQueueRefusesAndDrops) {
  Notification started;
  Notification release;
  std::atomic<int> ran{0};
  {
    ThreadPool pool({.thread_count = 1, .max_queued = 2});
    ASSERT_TRUE(pool.TryAdd([&] {
      started.Notify();
      release.Wait();
    }));
    ASSERT_TRUE(started.WaitUntil(Soon()));
    EXPECT_TRUE(pool.TryAdd([&] { ++ran; }));
    EXPECT_TRUE(pool.TryAdd([&] { ++ran; }));
    EXPECT_EQ(pool.queued(), 2U);
    const auto dropped = std::make_shared<int>(0);
    EXPECT_FALSE(pool.TryAdd([&, dropped] { ++ran; }));
    EXPECT_EQ(dropped.use_count(), 1);
    release.Notify();
  }
  // The destructor ran what was queued.
  EXPECT_EQ(ran, 2);
}

TEST(ThreadPoolTest, UrgentTasksGoFirst) {
  constexpr int kUrgent = 150;
  Notification started;
  Notification release;
  std::vector<int> order;  // of tasks; normal ones are below 0
  {
    ThreadPool pool({.thread_count = 1});
    ASSERT_TRUE(pool.TryAdd([&] {
      started.Notify();
      release.Wait();
    }));
    ASSERT_TRUE(started.WaitUntil(Soon()));
    for (int i = 1; i <= 3; ++i) {
      ASSERT_TRUE(pool.TryAdd([&, i] { order.push_back(-i); }));
    }
    for (int i = 0; i < kUrgent; ++i) {
      ASSERT_TRUE(pool.TryAdd([&, i] { order.push_back(i); },
                              ThreadPool::Urgency::kUrgent));
    }
    EXPECT_EQ(pool.queued(), kUrgent + 3U);
    release.Notify();
  }
  // In the order added, and some of the others in between.
  std::vector<int> urgent;
  std::vector<size_t> others;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] < 0 ? others.push_back(i) : urgent.push_back(order[i]);
  }
  ASSERT_EQ(urgent.size(), static_cast<size_t>(kUrgent));
  EXPECT_TRUE(std::is_sorted(urgent.begin(), urgent.end()));
  EXPECT_EQ(others, (std::vector<size_t>{64, 129, 152}));
  EXPECT_EQ(order[64], -1);
  EXPECT_EQ(order[152], -3);
}

TEST(ThreadPoolTest, ParallelForRunsEveryIndexOnce) {
  ThreadPool pool({.thread_count = 3});
  for (const size_t count : {0, 1, 2, 3, 100, 10'000}) {
    std::vector<std::atomic<int>> runs(count);
    pool.ParallelFor(count, [&](size_t i) { ++runs[i]; });
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(runs[i], 1) << i;
  }
}

TEST(ThreadPoolTest, ParallelForWritesAreSeenByTheCaller) {
  ThreadPool pool({.thread_count = 3});
  for (int round = 0; round < 200; ++round) {
    std::vector<int> plain(64);  // no atomics: the join publishes them
    pool.ParallelFor(plain.size(), [&](size_t i) { plain[i] = round; });
    for (const int value : plain) ASSERT_EQ(value, round);
  }
}

TEST(ThreadPoolTest, ParallelForNests) {
  ThreadPool pool({.thread_count = 2});
  std::atomic<int> ran{0};
  pool.ParallelFor(4, [&](size_t) {
    pool.ParallelFor(
        4, [&](size_t) { pool.ParallelFor(4, [&](size_t) { ++ran; }); });
  });
  EXPECT_EQ(ran, 64);
}

TEST(ThreadPoolTest, ParallelForFromManyThreads) {
  ThreadPool pool({.thread_count = 2, .max_queued = 3});
  std::atomic<int> ran{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.ParallelFor(16, [&](size_t) { ++ran; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ran, 4 * 50 * 16);
}

// No thread of the pool is free and the queue is full: the caller does it all.
TEST(ThreadPoolTest, ParallelForNeedsNoFreeThread) {
  Notification started;
  Notification release;
  ThreadPool pool({.thread_count = 1, .max_queued = 1});
  ASSERT_TRUE(pool.TryAdd([&] {
    started.Notify();
    release.Wait();
  }));
  ASSERT_TRUE(started.WaitUntil(Soon()));
  std::atomic<int> ran{0};
  pool.ParallelFor(10, [&](size_t) { ++ran; });  // its helper stays queued
  pool.ParallelFor(10, [&](size_t) { ++ran; });  // not even that fits
  EXPECT_EQ(ran, 20);
  // The helper that was queued finds nothing left and touches no dead body.
  release.Notify();
}

}  // namespace
}  // namespace engram
