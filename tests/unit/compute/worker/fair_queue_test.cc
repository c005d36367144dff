#include "compute/worker/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/worker/fair_pool.h"
#include "core/base/notification.h"
#include "core/base/thread_pool.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::Soon;
using ::testing::ElementsAre;
using Verdict = FairShare::Verdict;

class FairQueueTest : public ::testing::Test {
 protected:
  Verdict Push(FairQueue& queue, const std::string& caller, int number) {
    const Verdict verdict = queue.Judge({caller});
    if (verdict == Verdict::kTaken) {
      queue.Push({caller}, [this, caller, number] {
        ran_.push_back(absl::StrCat(caller, number));
      });
    }
    return verdict;
  }
  std::vector<std::string> RunAll(FairQueue& queue) {
    while (!queue.empty()) queue.Pop()();
    return std::move(ran_);
  }

  std::vector<std::string> ran_;
};

TEST_F(FairQueueTest, TakesOneOfEachInTurnAndThoseOfOneInOrder) {
  FairQueue queue(100);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Push(queue, "a", i), Verdict::kTaken);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Push(queue, "b", i), Verdict::kTaken);
  ASSERT_EQ(Push(queue, "c", 0), Verdict::kTaken);
  EXPECT_EQ(queue.size(), 7);
  EXPECT_THAT(RunAll(queue),
              ElementsAre("a0", "b0", "c0", "a1", "b1", "a2", "a3"));
}

TEST_F(FairQueueTest, ATaskWaitsForOneOfEveryOtherCaller) {
  FairQueue queue(10000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(Push(queue, "a", i), Verdict::kTaken);
    ASSERT_EQ(Push(queue, "b", i), Verdict::kTaken);
  }
  queue.Pop()();
  ASSERT_EQ(Push(queue, "c", 0), Verdict::kTaken);
  while (ran_.back() != "c0") queue.Pop()();
  EXPECT_THAT(ran_, ElementsAre("a0", "b0", "a1", "c0"));
  // One that comes back at once has to wait for its turn too.
  ASSERT_EQ(Push(queue, "c", 1), Verdict::kTaken);
  ran_.clear();
  for (int i = 0; i < 3; ++i) queue.Pop()();
  EXPECT_THAT(ran_, ElementsAre("b1", "a2", "c1"));
}

TEST_F(FairQueueTest, IsBoundedAndDividedBetweenCallers) {
  FairQueue queue(4);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Push(queue, "a", i), Verdict::kTaken);
  EXPECT_EQ(Push(queue, "a", 3), Verdict::kAboveShare);
  EXPECT_EQ(Push(queue, "b", 0), Verdict::kTaken);
  EXPECT_EQ(Push(queue, "c", 0), Verdict::kFull);
  EXPECT_THAT(RunAll(queue), ElementsAre("a0", "b0", "a1", "a2"));
  EXPECT_EQ(Push(queue, "a", 4), Verdict::kTaken);
}

// ---- on threads ----

TEST(FairPoolTest, RunsEveryTaskAndShowsThoseThatWait) {
  ThreadPool threads({.thread_count = 1});
  prometheus::Gauge queued;
  Notification started;
  Notification go_on;
  Notification ran;
  Notification last;
  {
    FairPool pool(&threads, 100, &queued);
    ASSERT_EQ(pool.Add({"a"},
                       [&] {
                         started.Notify();
                         go_on.WaitUntil(Soon());
                       }),
              Verdict::kTaken);
    ASSERT_TRUE(started.WaitUntil(Soon()));
    ASSERT_EQ(pool.Add({"b"}, [&] { ran.Notify(); }), Verdict::kTaken);
    ASSERT_EQ(pool.Add({"b"}, [&] { last.Notify(); }), Verdict::kTaken);
    EXPECT_EQ(queued.Value(), 2);
  }
  go_on.Notify();  // although the pool has gone
  ASSERT_TRUE(last.WaitUntil(Soon()));
  EXPECT_TRUE(ran.HasBeenNotified());
  EXPECT_EQ(queued.Value(), 0);
}

TEST(FairPoolTest, WhatTheThreadsDoNotTakeIsRefused) {
  Notification started;
  Notification go_on;
  prometheus::Gauge queued;
  ThreadPool threads({.thread_count = 1, .max_queued = 1});
  FairPool pool(&threads, 100, &queued);
  ASSERT_EQ(pool.Add({"a"},
                     [&] {
                       started.Notify();
                       go_on.WaitUntil(Soon());
                     }),
            Verdict::kTaken);
  ASSERT_TRUE(started.WaitUntil(Soon()));
  Notification ran;
  ASSERT_EQ(pool.Add({"a"}, [&] { ran.Notify(); }), Verdict::kTaken);
  EXPECT_EQ(pool.Add({"b"}, [] { ADD_FAILURE(); }), Verdict::kFull);
  go_on.Notify();
  EXPECT_TRUE(ran.WaitUntil(Soon()));
}

}  // namespace
}  // namespace engram
