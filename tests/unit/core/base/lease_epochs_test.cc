#include "core/base/lease_epochs.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/testing/eventually.h"

namespace engram {
namespace {

using ::engram::test::Soon;

TEST(LeaseEpochsTest, AMarkWithoutLeasesIsOverAtOnce) {
  LeaseEpochs leases;
  EXPECT_TRUE(leases.Ended(leases.TakeMark()));
  EXPECT_TRUE(leases.WaitUntilEnded(leases.TakeMark(), absl::InfinitePast()));
}

TEST(LeaseEpochsTest, ALeaseFromBeforeHoldsTheMarkUp) {
  LeaseEpochs leases;
  LeaseEpochs::Lease lease = leases.Take();
  const LeaseEpochs::Mark mark = leases.TakeMark();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(leases.Ended(mark));
  lease.End();
  EXPECT_TRUE(leases.Ended(mark));
  lease.End();
  EXPECT_TRUE(leases.Ended(mark));
}

TEST(LeaseEpochsTest, EveryMarkWaitsForWhatIsOpenThen) {
  LeaseEpochs leases;
  // Marks at every stage that the epochs may have got to.
  for (int stage = 0; stage < 8; ++stage) {
    for (int i = 0; i < stage; ++i)
      EXPECT_TRUE(leases.Ended(leases.TakeMark()));
    LeaseEpochs::Lease first = leases.Take();
    const LeaseEpochs::Mark first_mark = leases.TakeMark();
    LeaseEpochs::Lease second = leases.Take();
    EXPECT_FALSE(leases.Ended(first_mark));
    const LeaseEpochs::Mark second_mark = leases.TakeMark();
    LeaseEpochs::Lease third = leases.Take();
    const LeaseEpochs::Mark third_mark = leases.TakeMark();
    third.End();
    first.End();
    EXPECT_FALSE(leases.Ended(second_mark));
    EXPECT_FALSE(leases.Ended(third_mark));
    second.End();
    EXPECT_TRUE(leases.Ended(third_mark));
    EXPECT_TRUE(leases.Ended(second_mark));
    EXPECT_TRUE(leases.Ended(first_mark));
  }
}

TEST(LeaseEpochsTest, AMarkEndsThoughThereAlwaysIsALease) {
  LeaseEpochs leases;
  LeaseEpochs::Lease lease = leases.Take();
  for (int i = 0; i < 100; ++i) {
    const LeaseEpochs::Mark mark = leases.TakeMark();
    int steps = 0;
    for (; steps < 5 && !leases.Ended(mark); ++steps) {
      LeaseEpochs::Lease next = leases.Take();
      lease = std::move(next);
    }
    EXPECT_LT(steps, 5);
  }
  EXPECT_EQ(leases.active(), 1U);
}

TEST(LeaseEpochsTest, LeasesMove) {
  LeaseEpochs leases;
  LeaseEpochs::Lease lease = leases.Take();
  const LeaseEpochs::Mark mark = leases.TakeMark();
  LeaseEpochs::Lease moved = std::move(lease);
  EXPECT_EQ(leases.active(), 1U);
  lease.End();  // NOLINT(bugprone-use-after-move): it has nothing left
  EXPECT_FALSE(leases.Ended(mark));
  moved = LeaseEpochs::Lease();
  EXPECT_EQ(leases.active(), 0U);
  EXPECT_TRUE(leases.Ended(mark));
}

TEST(LeaseEpochsTest, ALeaseMayEndOnAnotherThread) {
  LeaseEpochs leases;
  LeaseEpochs::Lease lease = leases.Take();
  const LeaseEpochs::Mark mark = leases.TakeMark();
  EXPECT_FALSE(leases.WaitUntilEnded(mark, absl::Now()));
  std::thread thread([lease = std::move(lease)] {});
  EXPECT_TRUE(leases.WaitUntilEnded(mark, Soon()));
  thread.join();
}

TEST(LeaseEpochsTest, CountsWhatIsOpenOnAnyThread) {
  LeaseEpochs leases;
  constexpr size_t kThreads = 100;  // more than there are counters
  std::vector<LeaseEpochs::Lease> open(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    std::thread([&] { open[i] = leases.Take(); }).join();
  }
  EXPECT_EQ(leases.active(), kThreads);
  const LeaseEpochs::Mark mark = leases.TakeMark();
  while (!open.empty()) {
    EXPECT_FALSE(leases.Ended(mark));
    open.pop_back();
  }
  EXPECT_TRUE(leases.Ended(mark));
}

// The promise itself: what was there under the lease is not written to until
// the lease ends. `value` is plain memory, which tsan watches.
TEST(LeaseEpochsTest, NothingChangesUnderALease) {
  constexpr int kReaders = 3;
  constexpr int kChanges = 2000;
  LeaseEpochs leases;
  std::atomic<bool> here{true};
  std::atomic<bool> stop{false};
  struct {
    int64_t first = 0;
    int64_t second = 0;
  } value;
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        const LeaseEpochs::Lease lease = leases.Take();
        if (!here.load(std::memory_order_seq_cst)) continue;
        const int64_t first = value.first;
        std::this_thread::yield();  // time for an owner that does not wait
        if (first != value.second) ++torn;
      }
    });
  }
  for (int i = 1; i <= kChanges; ++i) {
    here.store(false, std::memory_order_seq_cst);
    EXPECT_TRUE(leases.WaitUntilEnded(leases.TakeMark(), Soon()));
    value.first = i;
    value.second = i;
    here.store(true, std::memory_order_seq_cst);
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
}

}  // namespace
}  // namespace engram
