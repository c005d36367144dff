#include "table_server/rebalance/load_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/thread_scratch.h"
#include "tests/unit/table_server/rebalance/rebalance_fakes.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::Eventually;
using test::FakeStore;
using test::Gate;
using test::kAll;
using test::kPartitionBytes;
using test::SmallManifest;

// A pool whose loads end in the hand-over at once.
class LoadPoolTest : public ::testing::Test {
 protected:
  void Start(LoadPool::Options options) {
    pool_ = std::make_unique<LoadPool>(
        hand_over_, store_, options,
        [this](const PartitionRef& ref, const absl::Status& status) {
          OnEnd(ref, status);
        });
  }
  void OnEnd(const PartitionRef& ref, const absl::Status& status) {
    if (status.ok()) {
      EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kKeep);
    } else {
      hand_over_.LoadFailed(ref, Clock::Steady().Now());
    }
    MutexLock lock(&mutex_);
    ++(status.ok() ? ended_ : failed_);
  }
  void OwnAll() {
    hand_over_.SetView(
        ClusterView::Create(SmallManifest(),
                            {.self = "a", .members = test::Members({"a"})})
            .value());
  }
  size_t ended() {
    MutexLock lock(&mutex_);
    return ended_;
  }
  size_t failed() {
    MutexLock lock(&mutex_);
    return failed_;
  }

  HandOver hand_over_{SmallManifest(), {.retry_load = absl::Milliseconds(5)}};
  FakeStore store_{SmallManifest(), nullptr};
  Gate gate_;
  Mutex mutex_;
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<LoadPool> pool_;  // last: its threads use all the others
};

TEST_F(LoadPoolTest, LoadsWhatIsThereFromTheStart) {
  OwnAll();
  Start({});
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(store_.loaded().size(), kAll);
  EXPECT_EQ(pool_->loaded_bytes(), kAll * kPartitionBytes);
}

TEST_F(LoadPoolTest, LoadsWhatComesLater) {
  Start({.thread_count = 2});
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
}

TEST_F(LoadPoolTest, FailedLoadsAreTriedAgainByTimeAlone) {
  Mutex mutex;
  std::set<PartitionRef> tried;
  store_.OnLoad([&](const PartitionRef& ref, FakeStore::OnBytes) {
    MutexLock lock(&mutex);
    return tried.insert(ref).second ? absl::UnavailableError("not now")
                                    : absl::OkStatus();
  });
  OwnAll();
  Start({.thread_count = 3});
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(failed(), kAll);
}

// A store's own CANCELLED is an error like others.
TEST_F(LoadPoolTest, ACancelledLoadIsToldWhileThePoolGoesOn) {
  bool first = true;
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return std::exchange(first, false) ? absl::CancelledError("by a peer")
                                       : absl::OkStatus();
  });
  OwnAll();
  Start({.thread_count = 1});
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(failed(), 1U);
}

// Loads under way go on where they are.
TEST_F(LoadPoolTest, OtherThreadsLoadWhileItIsPaced) {
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return gate_.Pass() ? absl::OkStatus() : absl::InternalError("stuck");
  });
  gate_.Close();
  OwnAll();
  Start({.thread_count = 4, .paced_thread_count = 1});
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 4; }));
  pool_->SetPaced(true);
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 5; }));
  gate_.Open();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(store_.most_at_a_time(), 5U);
}

TEST_F(LoadPoolTest, AllThreadsAgainWhenItIsNotPacedAnyMore) {
  Start({.thread_count = 4, .paced_thread_count = 1});
  pool_->SetPaced(true);
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return gate_.Pass() ? absl::OkStatus() : absl::InternalError("stuck");
  });
  gate_.Close();
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 1; }));
  pool_->SetPaced(false);
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 5; }));
  gate_.Open();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
}

TEST_F(LoadPoolTest, ALoadThatWaitsForThePaceGoesOnWithoutIt) {
  Start({.thread_count = 1, .pace = {.bytes_per_second = 1}});
  pool_->SetPaced(true);
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(
      Eventually([&] { return pool_->loaded_bytes() == kPartitionBytes; }));
  pool_->SetPaced(false);
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
}

TEST_F(LoadPoolTest, OnePacedThreadLoadsOneAtATime) {
  Start({.thread_count = 4, .paced_thread_count = 1});
  pool_->SetPaced(true);
  gate_.Close();
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return gate_.Pass() ? absl::OkStatus() : absl::InternalError("stuck");
  });
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 1; }));
  gate_.Open();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(store_.most_at_a_time(), 1U);
}

TEST_F(LoadPoolTest, PacedLoadsKeepToTheirBytesASecond) {
  Start({.paced_thread_count = 2,
         .pace = {.bytes_per_second = 50 * kPartitionBytes}});
  pool_->SetPaced(true);
  OwnAll();
  const absl::Time began = Clock::Steady().Now();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_GE(Clock::Steady().Now() - began, absl::Seconds(kAll - 1) / 50);
}

// As a source that has to wait, and tells so.
TEST_F(LoadPoolTest, WaitingIsNoWork) {
  Start({.thread_count = 1, .pace = {.time_share = 1e-9}});
  pool_->SetPaced(true);
  store_.OnLoad([](const PartitionRef&, FakeStore::OnBytes on_bytes) {
    absl::Status status;
    for (int i = 0; status.ok() && i < 10; ++i) status = on_bytes(0);
    return status;
  });
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
}

// What is at hand already takes no time of others.
TEST_F(LoadPoolTest, BytesThatAreNotReadAreNotPacedThoughTheyAreDone) {
  Start({.thread_count = 1, .pace = {.bytes_per_second = 1}});
  pool_->SetPaced(true);
  store_.OnLoad([](const PartitionRef&, FakeStore::OnBytes on_bytes) {
    return on_bytes(0);
  });
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(Eventually([&] { return ended() == kAll; }));
  EXPECT_EQ(pool_->loaded_bytes(), 0U);
  EXPECT_EQ(pool_->done_bytes(), kAll * kPartitionBytes);
}

TEST_F(LoadPoolTest, TendsTheStoreWhenThereIsNothingToLoad) {
  Start({.thread_count = 1});
  EXPECT_TRUE(Eventually([&] { return store_.tended() > 2; }));
  pool_->SetPaced(true);
  const size_t before = store_.tended();
  EXPECT_TRUE(Eventually([&] { return store_.tended() > before + 2; }));
}

TEST_F(LoadPoolTest, AThreadKeepsItsScratchOnlyWhileThereIsSomethingToLoad) {
  Mutex mutex;
  std::vector<bool> new_before_idle;
  std::vector<bool> new_after_idle;
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes) -> absl::Status {
    auto scratch = ThreadScratch::Take(100);
    if (!scratch.ok()) return scratch.status();
    const bool idle_before = store_.tended() > 0;
    MutexLock lock(&mutex);
    (idle_before ? new_after_idle : new_before_idle)
        .push_back(scratch->bytes()[0] == std::byte{0});
    scratch->bytes()[0] = std::byte{1};
    return idle_before ? absl::OkStatus() : absl::UnavailableError("later");
  });
  OwnAll();
  Start({.thread_count = 1});
  ASSERT_TRUE(Eventually([&] { return ended() == kAll; }));
  MutexLock lock(&mutex);
  const auto only_the_first_is_new = [](const std::vector<bool>& news) {
    return news.size() > 1 && news[0] &&
           std::count(news.begin(), news.end(), true) == 1;
  };
  EXPECT_TRUE(only_the_first_is_new(new_before_idle));
  EXPECT_TRUE(new_after_idle[0]);
}

TEST_F(LoadPoolTest, ItsEndDoesNotWaitForThePace) {
  Start({.pace = {.bytes_per_second = 1}});
  pool_->SetPaced(true);
  OwnAll();
  pool_->Wake();
  EXPECT_TRUE(
      Eventually([&] { return pool_->loaded_bytes() == kPartitionBytes; }));
  const absl::Time began = Clock::Steady().Now();
  pool_.reset();
  EXPECT_LT(Clock::Steady().Now() - began, absl::Seconds(60));
  EXPECT_EQ(ended() + failed(), 0U);
}

TEST_F(LoadPoolTest, ItsEndCutsLoadsShort) {
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes on_bytes) {
    absl::Status status;
    while (status.ok()) status = on_bytes(1);
    return status;
  });
  OwnAll();
  Start({.thread_count = 2});
  EXPECT_TRUE(Eventually([&] { return pool_->loaded_bytes() > 100; }));
  pool_.reset();
  EXPECT_EQ(ended() + failed(), 0U);
}

TEST_F(LoadPoolTest, ALoadThatEndsWellAllTheSameIsTold) {
  store_.OnLoad([&](const PartitionRef&, FakeStore::OnBytes on_bytes) {
    absl::Status status;
    while (status.ok()) status = on_bytes(1);
    return absl::OkStatus();
  });
  OwnAll();
  Start({.thread_count = 1});
  EXPECT_TRUE(Eventually([&] { return pool_->loaded_bytes() > 0; }));
  pool_.reset();
  EXPECT_EQ(ended(), 1U);  // and no other has begun
}

}  // namespace
}  // namespace engram
