#include "engram_client/compute/worker_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "tests/testing/captured_log.h"
#include "tests/unit/engram_client/compute/client_fixture.h"

namespace engram {
namespace {

using LeasePtr = std::unique_ptr<WorkerSet::Lease>;
using test::Eventually;
using test::Soon;
using ::testing::HasSubstr;

class WorkerSetTest : public test::ClientFixture {
 protected:
  void Start(size_t count) {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < count; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      workers_.push_back(StartWorker(name));
      addresses.push_back(Address(name));
    }
    set_ = std::make_unique<WorkerSet>(addresses, &metrics_);
    ASSERT_TRUE(set_->WaitForModel(Soon()).ok());
    none_.assign(count, false);
  }
  LeasePtr Take() {
    auto lease = set_->Take(none_, Soon());
    EXPECT_TRUE(lease.ok()) << lease.status();
    return *std::move(lease);
  }
  // All that are ready but this one.
  std::vector<bool> AllBut(size_t index) const {
    std::vector<bool> avoid(none_.size(), true);
    avoid[index] = false;
    return avoid;
  }
  bool IsBack(size_t index) {
    return Eventually(
        [&] { return set_->TakeForHedge(AllBut(index)) != nullptr; });
  }
  // Whether the last of three silences in a row did it.
  bool LeftForSilence(size_t index) {
    EXPECT_FALSE(set_->Silent(index));
    EXPECT_FALSE(set_->Silent(index));
    return set_->Silent(index);
  }

  prometheus::Registry registry_;
  StepMetrics metrics_{registry_};
  std::vector<std::unique_ptr<test::TestWorker>> workers_;
  std::unique_ptr<WorkerSet> set_;
  std::vector<bool> none_;
};

TEST_F(WorkerSetTest, SilenceInARowCounts) {
  Start(2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(set_->IsSuspect(0));
    EXPECT_FALSE(set_->Silent(0));
    EXPECT_FALSE(set_->Silent(0));
    EXPECT_TRUE(set_->IsSuspect(0));
    set_->Answered(0);
  }
  EXPECT_TRUE(LeftForSilence(0));
  EXPECT_EQ(set_->TakeForHedge(AllBut(0)), nullptr);
}

TEST_F(WorkerSetTest, TellsWhoGetsNoStepsAndWhoDoesAgain) {
  const test::CapturedLog log;
  Start(2);
  EXPECT_EQ(metrics_.workers.Value(), 2);
  ASSERT_TRUE(Eventually([&] { return metrics_.workers_ready.Value() == 2; }));
  ASSERT_TRUE(LeftForSilence(0));
  EXPECT_EQ(metrics_.workers_ready.Value(), 1);
  EXPECT_THAT(log.text(),
              HasSubstr(Address("a") + ": gets no steps: it was silent while "
                                       "others answered\n"));
  ASSERT_TRUE(IsBack(0));
  EXPECT_EQ(metrics_.workers_ready.Value(), 2);
  const std::string ready = Address("a") + ": ready\n";
  EXPECT_TRUE(Eventually(
      [&] { return log.text().find(ready) != log.text().rfind(ready); }));
  set_.reset();  // what may log must be gone before the log is
  workers_.clear();
}

TEST_F(WorkerSetTest, OneThatComesBackIsTriedWithSingleSteps) {
  Start(2);
  ASSERT_TRUE(LeftForSilence(0));
  ASSERT_TRUE(IsBack(0));
  const LeasePtr trial = *set_->Take(AllBut(0), Soon());
  std::vector<LeasePtr> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(Take());
    EXPECT_EQ(others.back()->index(), 1);
  }
  EXPECT_EQ(set_->TakeForHedge(AllBut(0)), nullptr);
  // Better than nobody.
  EXPECT_EQ((*set_->Take(AllBut(0), Soon()))->index(), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(set_->IsSuspect(0));
    set_->Answered(0);
  }
  EXPECT_FALSE(set_->IsSuspect(0));
  EXPECT_EQ(Take()->index(), 0);
}

TEST_F(WorkerSetTest, AHedgeRatherGoesToAWorkerThatIsWell) {
  Start(3);
  ASSERT_TRUE(LeftForSilence(0));
  ASSERT_TRUE(IsBack(0));
  std::vector<LeasePtr> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(set_->TakeForHedge({false, false, true}));
    ASSERT_NE(others.back(), nullptr);
    EXPECT_EQ(others.back()->index(), 1);
  }
}

// Its host may be gone for good.
TEST_F(WorkerSetTest, OneThatDoesNotTellItsModelIsNotAmongTheHalf) {
  Start(3);
  ASSERT_TRUE(LeftForSilence(0));
  workers_[0] = nullptr;
  EXPECT_TRUE(Eventually([&] { return set_->Silent(1); }));
}

TEST_F(WorkerSetTest, OneSilenceEndsATrial) {
  Start(2);
  ASSERT_TRUE(LeftForSilence(0));
  ASSERT_TRUE(IsBack(0));
  set_->Answered(0);
  EXPECT_TRUE(set_->Silent(0));
  EXPECT_EQ(set_->TakeForHedge(AllBut(0)), nullptr);
}

TEST_F(WorkerSetTest, NoMoreThanHalfAreLeft) {
  Start(3);
  ASSERT_TRUE(LeftForSilence(0));
  EXPECT_FALSE(LeftForSilence(1));
  EXPECT_FALSE(LeftForSilence(2));
  // Nor when they are on trial.
  ASSERT_TRUE(IsBack(0));
  EXPECT_FALSE(set_->Silent(1));
}

TEST_F(WorkerSetTest, ADeadlineLeavesEvenTheOnlyOneUntilItAnswers) {
  Start(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(set_->HeardNothing(0));
    // Not longer and longer: there is nobody else.
    ASSERT_TRUE(IsBack(0));
  }
}

TEST_F(WorkerSetTest, ADeadlineIsEnoughWhereOthersAreWell) {
  Start(2);
  EXPECT_TRUE(set_->HeardNothing(1));
  EXPECT_FALSE(set_->HeardNothing(1));
  EXPECT_EQ(set_->TakeForHedge(AllBut(1)), nullptr);
  ASSERT_TRUE(IsBack(1));
  EXPECT_TRUE(set_->IsSuspect(1));
}

}  // namespace
}  // namespace engram
