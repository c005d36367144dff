#include "table_server/store/read_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/notification.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

// Reads are a function's calls.
class FunctionJob final : public ReadJob {
 public:
  FunctionJob(absl::StatusOr<size_t> count,
              std::function<absl::Status(size_t)> read)
      : count_(std::move(count)), read_(std::move(read)) {}

  absl::StatusOr<size_t> Plan() override { return count_; }
  absl::Status Read(size_t i) override { return read_(i); }

 private:
  const absl::StatusOr<size_t> count_;
  const std::function<absl::Status(size_t)> read_;
};

struct Outcome {
  Notification done;
  absl::Status status;

  ReadPool::OnDone Teller() {
    return [this](absl::Status told) {
      status = std::move(told);
      done.Notify();
    };
  }
  absl::Status Wait() {
    ENGRAM_CHECK(done.WaitUntil(test::Soon()));
    return status;
  }
};

TEST(ReadPoolTest, ReadsOfOneJobAreUnderWayOnAllThreads) {
  ReadPool pool({.thread_count = 4});
  std::atomic<int> here{0};
  Notification all_here;
  Outcome outcome;
  // No read ends before four have begun.
  pool.Run(std::make_unique<FunctionJob>(8,
                                         [&](size_t) {
                                           if (here.fetch_add(1) == 3)
                                             all_here.Notify();
                                           all_here.Wait();
                                           return absl::OkStatus();
                                         }),
           8, absl::InfiniteFuture(), outcome.Teller());
  EXPECT_THAT(outcome.Wait(), IsOk());
  EXPECT_EQ(here.load(), 8);
  EXPECT_EQ(pool.queued(), 0u);
}

TEST(ReadPoolTest, FirstErrorIsToldAndEndsTheJob) {
  ReadPool pool({.thread_count = 1});
  int reads = 0;
  Outcome outcome;
  pool.Run(std::make_unique<FunctionJob>(
               100,
               [&](size_t i) {
                 ++reads;
                 return i < 2 ? absl::OkStatus()
                              : absl::DataLossError(absl::StrCat("read ", i));
               }),
           100, absl::InfiniteFuture(), outcome.Teller());
  EXPECT_THAT(outcome.Wait(), IsError(absl::StatusCode::kDataLoss, "read 2"));
  EXPECT_EQ(reads, 3);
  EXPECT_EQ(pool.queued(), 0u);
}

TEST(ReadPoolTest, PlanMayFailOrFindNothing) {
  ReadPool pool({.thread_count = 1});
  const auto never = [](size_t) -> absl::Status { std::abort(); };
  Outcome failed;
  pool.Run(std::make_unique<FunctionJob>(absl::NotFoundError("no"), never), 7,
           absl::InfiniteFuture(), failed.Teller());
  EXPECT_THAT(failed.Wait(), IsError(absl::StatusCode::kNotFound, "no"));
  Outcome empty;
  pool.Run(std::make_unique<FunctionJob>(0, never), 7, absl::InfiniteFuture(),
           empty.Teller());
  EXPECT_THAT(empty.Wait(), IsOk());
  EXPECT_EQ(pool.queued(), 0u);
}

TEST(ReadPoolTest, DeadlineIsLookedAtBeforeEachRead) {
  FakeClock clock(absl::UnixEpoch());
  ReadPool pool({.thread_count = 1, .clock = &clock});
  int reads = 0;
  Outcome outcome;
  pool.Run(std::make_unique<FunctionJob>(10,
                                         [&](size_t) {
                                           ++reads;
                                           clock.Advance(absl::Seconds(1));
                                           return absl::OkStatus();
                                         }),
           10, absl::UnixEpoch() + absl::Seconds(4), outcome.Teller());
  EXPECT_THAT(outcome.Wait(), IsError(absl::StatusCode::kDeadlineExceeded,
                                      HasSubstr("after 4 of 10 reads")));
  EXPECT_EQ(reads, 4);
}

// A pool whose one thread is held by a job of two reads.
class HeldPoolTest : public ::testing::Test {
 protected:
  void Hold() {
    Notification begun;
    pool_.Run(std::make_unique<FunctionJob>(2,
                                            [&](size_t i) {
                                              if (i == 0) begun.Notify();
                                              open_.Wait();
                                              return absl::OkStatus();
                                            }),
              8, absl::InfiniteFuture(), held_.Teller());
    begun.Wait();
  }
  void Release() {
    open_.Notify();
    EXPECT_THAT(held_.Wait(), IsOk());
  }
  void Run(size_t reads, absl::Time deadline, Outcome& outcome) {
    pool_.Run(std::make_unique<FunctionJob>(
                  reads, [](size_t) { return absl::OkStatus(); }),
              reads, deadline, outcome.Teller());
  }

  FakeClock clock_{absl::UnixEpoch()};
  ReadPool pool_{{.thread_count = 1, .max_queued = 10, .clock = &clock_}};
  Notification open_;
  Outcome held_;
};

TEST_F(HeldPoolTest, RefusesWhileItsBoundWaitsAndTellsAtOnce) {
  Hold();
  EXPECT_EQ(pool_.queued(), 2u);  // what Plan said
  Outcome fits;
  Run(8, absl::InfiniteFuture(), fits);
  Outcome refused;
  Run(1, absl::InfiniteFuture(), refused);
  EXPECT_THAT(refused.Wait(), IsError(absl::StatusCode::kResourceExhausted,
                                      HasSubstr("the limit is 10")));
  EXPECT_EQ(pool_.queued(), 10u);
  Outcome nothing;
  Run(0, absl::InfiniteFuture(), nothing);
  Release();
  EXPECT_THAT(fits.Wait(), IsOk());
  EXPECT_THAT(nothing.Wait(), IsOk());
  EXPECT_EQ(pool_.queued(), 0u);
}

// Though others are out: one as large as the bound would wait for ever.
TEST_F(HeldPoolTest, TakesOneThatIsLargerThanItsBound) {
  Hold();
  Outcome large;
  Run(12, absl::InfiniteFuture(), large);
  Outcome refused;
  Run(1, absl::InfiniteFuture(), refused);
  EXPECT_FALSE(refused.Wait().ok());
  Release();
  EXPECT_THAT(large.Wait(), IsOk());
  EXPECT_EQ(pool_.queued(), 0u);
}

TEST_F(HeldPoolTest, DeadlineOfAJobThatWaitsIsToldWhileAllThreadsAreHeld) {
  Hold();
  Outcome late;
  Run(5, absl::UnixEpoch() + absl::Seconds(4), late);
  Outcome later;
  Run(1, absl::UnixEpoch() + absl::Seconds(9), later);
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(late.Wait(), IsError(absl::StatusCode::kDeadlineExceeded,
                                   HasSubstr("before the local store began")));
  EXPECT_FALSE(later.done.HasBeenNotified());
  EXPECT_EQ(pool_.queued(), 3u);
  Release();
  EXPECT_THAT(later.Wait(), IsOk());
  EXPECT_EQ(pool_.queued(), 0u);
}

// Not one after another: a job whose reads are slow does not hold up others
// while there are threads.
TEST(ReadPoolTest, SlowJobLeavesOtherThreadsToOthers) {
  ReadPool pool({.thread_count = 2});
  Notification open;
  Outcome slow;
  pool.Run(std::make_unique<FunctionJob>(1,
                                         [&](size_t) {
                                           open.Wait();
                                           return absl::OkStatus();
                                         }),
           1, absl::InfiniteFuture(), slow.Teller());
  for (int i = 0; i < 10; ++i) {
    Outcome quick;
    pool.Run(std::make_unique<FunctionJob>(
                 3, [](size_t) { return absl::OkStatus(); }),
             3, absl::InfiniteFuture(), quick.Teller());
    EXPECT_THAT(quick.Wait(), IsOk());
  }
  EXPECT_FALSE(slow.done.HasBeenNotified());
  open.Notify();
  EXPECT_THAT(slow.Wait(), IsOk());
}

TEST(ReadPoolTest, ManyJobsAtOnceAreEachToldOnce) {
  std::atomic<int> told{0};
  std::atomic<int> reads{0};
  {
    ReadPool pool({.thread_count = 8});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (size_t i = 0; i < 200; ++i) {
          pool.Run(std::make_unique<FunctionJob>(i % 7,
                                                 [&](size_t) {
                                                   ++reads;
                                                   return absl::OkStatus();
                                                 }),
                   i % 7, absl::InfiniteFuture(), [&](absl::Status status) {
                     if (status.ok()) ++told;
                   });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(told.load(), 800);
  EXPECT_EQ(reads.load(), 4 * (28 * 21 + 0 + 1 + 2 + 3 + 0));
}

}  // namespace
}  // namespace engram
