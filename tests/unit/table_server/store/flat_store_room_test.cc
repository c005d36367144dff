// What a store takes while its disk takes no changes.

#include <climits>
#include <filesystem>

#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

using FlatStoreRoomTest = FlatStoreFixture;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// What is not there any more, but has its room.
TEST_F(FlatStoreRoomTest, WhatCouldNotBeRemovedCountsUntilItIs) {
  Open();
  PutMadeUpTo(2);
  const uint64_t bytes = store_->disk_bytes();
  FlipByte(PathOf(0), 4096 + 7);
  files_.StopAfter(0);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes);
  EXPECT_THAT(store_->Remove(Ref(0)),
              IsError(kUnavailable, HasSubstr("no more changes")));
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes);
  files_.StopAfter(INT_MAX);
  EXPECT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_FALSE(std::filesystem::exists(PathOf(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes / 2);
  EXPECT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), bytes / 2);
}

TEST_F(FlatStoreRoomTest, PutTakesTheRoomOfWhatCouldNotBeRemoved) {
  Open();
  PutMadeUpTo(2);
  const uint64_t bytes = store_->disk_bytes();
  options_.max_bytes = bytes;  // not one more
  Open();
  FlipByte(PathOf(0), 4096 + 7);
  files_.StopAfter(0);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(absl::StatusCode::kDataLoss, ::testing::_));
  files_.StopAfter(INT_MAX);
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), bytes);
  ExpectWhole(0);
}

// Whatever of a Put fails: the room is what the files have.
TEST_F(FlatStoreRoomTest, RoomIsWhatFilesHaveWhereverAPutStops) {
  bool done = false;
  for (int changes = 0; !done; ++changes) {
    files_.StopAfter(INT_MAX);
    Open();
    PutMadeUpTo(1);
    files_.StopAfter(changes);
    done = PutMade(*store_, manifest_, Ref(0)).ok();
    EXPECT_EQ(store_->disk_bytes(), std::filesystem::file_size(PathOf(0)))
        << changes;
    files_.StopAfter(INT_MAX);
    EXPECT_THAT(store_->Remove(Ref(0)), IsOk());
    EXPECT_EQ(store_->disk_bytes(), 0u) << changes;
    EXPECT_FALSE(std::filesystem::exists(PathOf(0))) << changes;
  }
}

// A file that cannot be looked at, or is damaged and cannot be removed.
TEST_F(FlatStoreRoomTest, WhatIsLeftWhenOpenedCountsUntilItIsRemoved) {
  Open();
  PutMadeUpTo(1);
  const uint64_t bytes = store_->disk_bytes();
  files_.FailReadsOf("/0.rows");
  Open();
  files_.FailReadsOf("");
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes);
  EXPECT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), 0u);
  EXPECT_FALSE(std::filesystem::exists(PathOf(0)));
  // Not to be removed as a file is.
  std::filesystem::create_directory(PathOf(0));
  Open();
  EXPECT_EQ(store_->stats().removed_damaged, 1u);
  EXPECT_EQ(store_->disk_bytes(), bytes);
  std::filesystem::remove(PathOf(0));
  EXPECT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), 0u);
}

}  // namespace
}  // namespace engram::test
