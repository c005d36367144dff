#include "table_server/loading/stored_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "table_server/store/fake_local_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/loading/tiered_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::ElementsAre;
using Place = StoredCopies::Place;

class StoredCopiesTest : public ::testing::Test {
 protected:
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }
  absl::Status Keep(uint32_t partition, Place place) {
    std::string rows = SyntheticPartition(manifest_, Ref(partition));
    return copies_.Keep(Ref(partition), BytesOf(rows), place);
  }
  // Whole in memory, without a copy, and due to get one.
  void MakeUnkept(uint32_t partition) {
    ASSERT_TRUE(copies_.BeginLoad(Ref(partition)));
    copies_.Loaded(Ref(partition), Place::kHost, /*kept=*/false);
    clock_.Advance(kRetry);
  }
  // With a copy; whole in memory or not.
  void MakeKept(uint32_t partition, Place place) {
    ASSERT_TRUE(copies_.BeginLoad(Ref(partition)));
    ASSERT_THAT(Keep(partition, place), IsOk());
    copies_.Loaded(Ref(partition), place, /*kept=*/true);
  }

  static constexpr absl::Duration kRetry = absl::Minutes(1);
  const Manifest& manifest_ = TestManifest();
  FakeLocalStore local_{manifest_};
  DamagedCopies damaged_;
  FakeClock clock_{absl::UnixEpoch()};
  StoredCopies copies_{local_, damaged_, {.retry = kRetry, .clock = &clock_}};
};

// Its memory may be another partition's by then.
TEST_F(StoredCopiesTest, WhatIsBeingFreedIsNotPut) {
  MakeUnkept(0);
  ASSERT_TRUE(copies_.BeginFree(Ref(0)));
  EXPECT_EQ(copies_.TakeUnkept(), std::nullopt);
  EXPECT_EQ(copies_.unkept(), 0U);
  copies_.Freed(Ref(0));
  EXPECT_TRUE(copies_.BeginLoad(Ref(0)));
}

TEST_F(StoredCopiesTest, NorIsWhatWasToBeFreedWhileItWasPut) {
  MakeUnkept(0);
  ASSERT_EQ(copies_.TakeUnkept(), Ref(0));
  ASSERT_FALSE(copies_.BeginFree(Ref(0)));
  ASSERT_TRUE(copies_.EndRetry(Ref(0), /*kept=*/false));
  clock_.Advance(2 * kRetry);
  EXPECT_EQ(copies_.TakeUnkept(), std::nullopt);
}

// A copy that makes room for another is to come back, but not of what is
// being freed.
TEST_F(StoredCopiesTest, NorIsWhatMadeRoomWhileItWasFreed) {
  MakeKept(0, Place::kHost);
  local_.SetCapacity(1);
  local_.OnRemove(
      [&](const PartitionRef& ref) { EXPECT_TRUE(copies_.BeginFree(ref)); });
  MakeKept(1, Place::kCold);
  clock_.Advance(kRetry);
  EXPECT_EQ(copies_.TakeUnkept(), std::nullopt);
}

TEST_F(StoredCopiesTest, WhatCannotBeRemovedLeavesOthersToMakeRoom) {
  MakeKept(0, Place::kHost);
  MakeKept(1, Place::kHost);
  local_.SetCapacity(2);
  local_.OnRemove([&](const PartitionRef& ref) {
    const bool stays = ref == Ref(1);
    local_.FailRemoves(stays ? absl::UnavailableError("bad sector")
                             : absl::OkStatus());
  });
  MakeKept(2, Place::kCold);
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(1), Ref(2)));
}

TEST_F(StoredCopiesTest, NothingThatCanBeRemovedIsNoRoom) {
  MakeKept(0, Place::kHost);
  local_.SetCapacity(1);
  local_.FailRemoves(absl::UnavailableError("bad sector"));
  ASSERT_TRUE(copies_.BeginLoad(Ref(1)));
  EXPECT_TRUE(absl::IsResourceExhausted(Keep(1, Place::kCold)));
}

// Gone is gone, whatever the store says besides.
TEST_F(StoredCopiesTest, WhatIsGoneWithAnErrorMakesRoomAndComesBack) {
  MakeKept(0, Place::kHost);
  local_.SetCapacity(1);
  local_.OnRemove([&](const PartitionRef& ref) {
    local_.OnRemove(nullptr);
    EXPECT_THAT(local_.Remove(ref), IsOk());
    local_.FailRemoves(absl::UnavailableError("no sync"));
  });
  MakeKept(1, Place::kCold);
  EXPECT_EQ(copies_.unkept(), 1U);
  clock_.Advance(kRetry);
  EXPECT_EQ(copies_.TakeUnkept(), Ref(0));
  EXPECT_FALSE(copies_.EndRetry(Ref(0), /*kept=*/false));
}

// Whoever frees serves others: it must not wait for a read that is just
// dropping the copy.
TEST_F(StoredCopiesTest, FreeingDoesNotWait) {
  MakeKept(0, Place::kCold);
  damaged_.Add(Ref(0));
  local_.AbortChanges(1);
  ASSERT_TRUE(copies_.BeginFree(Ref(0)));
  copies_.Freed(Ref(0));
  EXPECT_TRUE(local_.Has(Ref(0)));
  EXPECT_FALSE(copies_.HasSound(Ref(0)));
  MakeKept(0, Place::kCold);
  EXPECT_TRUE(copies_.HasSound(Ref(0)));
}

}  // namespace
}  // namespace engram::test
