// A disk that fails, is full, is slow, or does things by halves.

#include <filesystem>

#include "core/base/notification.h"
#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using FlatStoreFaultsTest = FlatStoreFixture;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

TEST_F(FlatStoreFaultsTest, ReadErrorsAreToldWithThePathAndOthersAreFine) {
  Open();
  PutMadeUpTo(3);
  files_.FailReadsOf("/1.rows");
  const auto says = IsError(
      kUnavailable, AllOf(HasSubstr(PathOf(1)), HasSubstr("Input/output")));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), says);
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(1)), says);
  EXPECT_EQ(store_->stats().read_errors, 2u);
  EXPECT_TRUE(store_->Has(Ref(1)));
  EXPECT_EQ(store_->stats().dropped_damaged, 0u);
  const std::vector<RowId> others = {FirstRow(2) + 7, 5};
  const auto got = FetchRows(*store_, manifest_, 0, others);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, MadeRows(manifest_, Ref(0).layer, others));
  files_.FailReadsOf("");
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), IsOk());
}

// It may be readable tomorrow.
TEST_F(FlatStoreFaultsTest, UnreadableFileIsNotRemovedWhenOpened) {
  Open();
  PutMadeUpTo(2);
  files_.FailReadsOf("/1.rows");
  Open();
  EXPECT_EQ(store_->Partitions(), std::vector<PartitionRef>{Ref(0)});
  EXPECT_EQ(store_->stats().read_errors, 1u);
  files_.FailReadsOf("");
  Open();
  EXPECT_TRUE(store_->Has(Ref(1)));
  ExpectWhole(1);
}

TEST_F(FlatStoreFaultsTest, MissingFileIsNamedAndIsNotThereFromThenOn) {
  options_.max_open_files = 1;
  Open();
  PutMadeUpTo(2);
  const uint64_t bytes = store_->disk_bytes();
  std::filesystem::remove(PathOf(0));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(absl::StatusCode::kDataLoss, HasSubstr(PathOf(0))));
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes / 2);
  EXPECT_EQ(store_->stats().dropped_damaged, 1u);
  PutMadeUpTo(1);
  ExpectWhole(0);
  EXPECT_EQ(store_->disk_bytes(), bytes);
}

// Whoever has it open reads on; what comes later finds nothing.
TEST_F(FlatStoreFaultsTest, ReadsThatAreOutGoOnWhenItIsDropped) {
  Open();
  PutMadeUpTo(1);
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {4000}), IsOk());
  FlipByte(PathOf(0), 4096 + 7);
  files_.HoldReadsOf("/0.rows");
  OutFetch good = StartFetch(*store_, manifest_, 0, {4000});
  OutFetch bad = StartFetch(*store_, manifest_, 0, {0});
  files_.WaitForHeldReads(2);
  files_.HoldReadsOf("");
  EXPECT_THAT(bad.Wait(), IsError(absl::StatusCode::kDataLoss, ::testing::_));
  const auto got = good.Wait();
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, MadeRows(manifest_, Ref(0).layer, {4000}));
  EXPECT_FALSE(store_->Has(Ref(0)));
}

// What a reader found in the file before says nothing about the one that was
// put since.
TEST_F(FlatStoreFaultsTest, DamageOfAReplacedFileDoesNotDropTheNewOne) {
  Open();
  PutMadeUpTo(1);
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {4000}), IsOk());
  FlipByte(PathOf(0), 4096 + 7);
  files_.HoldReadsOf("/0.rows");
  OutFetch bad = StartFetch(*store_, manifest_, 0, {0});
  files_.WaitForHeldReads(1);
  PutMadeUpTo(1);
  files_.HoldReadsOf("");
  EXPECT_THAT(bad.Wait(), IsError(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_TRUE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->stats().dropped_damaged, 0u);
  ExpectWhole(0);
}

TEST_F(FlatStoreFaultsTest, WhatIsJustBeingDroppedIsPutAfterIt) {
  Open();
  PutMadeUpTo(1);
  FlipByte(PathOf(0), 4096 + 7);
  Notification dropping;
  Notification go_on;
  files_.OnRemove([&](const std::string& path) {
    if (path != PathOf(0)) return;
    dropping.Notify();
    go_on.Wait();
  });
  OutFetch bad = StartFetch(*store_, manifest_, 0, {0});
  dropping.Wait();
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(0)),
              IsError(absl::StatusCode::kAborted, HasSubstr(PathOf(0))));
  EXPECT_FALSE(store_->Has(Ref(0)));
  go_on.Notify();
  EXPECT_THAT(bad.Wait(), IsError(absl::StatusCode::kDataLoss, ::testing::_));
  PutMadeUpTo(1);
  ExpectWhole(0);
}

TEST_F(FlatStoreFaultsTest, ShortReadsAndWritesGoOn) {
  files_.LimitTransfers(4096 + 512);
  Open();
  PutMadeUpTo(2);
  ExpectWhole(0);
  files_.LimitTransfers(SIZE_MAX);
  Open();
  ExpectWhole(0);
  ExpectWhole(1);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, 999}), IsOk());
}

TEST_F(FlatStoreFaultsTest, FullDiskLeavesNothingHalfWritten) {
  Open();
  PutMadeUpTo(1);
  const uint64_t bytes = store_->disk_bytes();
  // Room for some of the pages, for all but the header, and for everything.
  for (const uint64_t room : {uint64_t{4096}, bytes - 4096, bytes - 1}) {
    files_.LimitRoom(room);
    EXPECT_THAT(PutMade(*store_, manifest_, Ref(1)),
                IsError(absl::StatusCode::kResourceExhausted,
                        HasSubstr("No space left")));
    EXPECT_FALSE(store_->Has(Ref(1)));
    EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
    EXPECT_FALSE(std::filesystem::exists(PathOf(1) + ".tmp"));
    EXPECT_EQ(store_->disk_bytes(), bytes);
  }
  EXPECT_EQ(store_->stats().full_puts, 3u);
  ExpectWhole(0);
  files_.LimitRoom(bytes);
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  ExpectWhole(1);
}

TEST_F(FlatStoreFaultsTest, PutThatFailsKeepsWhatWasThereBefore) {
  Open();
  PutMadeUpTo(1);
  files_.LimitRoom(0);
  EXPECT_FALSE(PutMade(*store_, manifest_, Ref(0)).ok());
  ExpectWhole(0);
  EXPECT_TRUE(store_->Has(Ref(0)));
}

TEST_F(FlatStoreFaultsTest, SlowPartitionHoldsUpNoOther) {
  Open();
  PutMadeUpTo(2);
  files_.HoldReadsOf("/0.rows");
  OutFetch slow = StartFetch(*store_, manifest_, 0, {0});
  files_.WaitForHeldReads(1);
  for (RowId row = 0; row < 20; ++row) {
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(1) + row}), IsOk());
  }
  EXPECT_FALSE(slow.IsDone());
  files_.HoldReadsOf("");
  const auto got = slow.Wait();
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, MadeRows(manifest_, Ref(0).layer, {0}));
}

TEST_F(FlatStoreFaultsTest, WhatWaitsBehindASlowDiskIsBoundedAndEnds) {
  options_.reads.thread_count = 2;
  options_.reads.max_queued = 6;
  FakeClock clock(absl::UnixEpoch());
  options_.reads.clock = &clock;
  Open();
  PutMadeUpTo(3);
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), IsOk());
  files_.HoldReadsOf(".rows");
  OutFetch held =
      StartFetch(*store_, manifest_, 0, {0, FirstRow(1), 1000, 2000});
  files_.WaitForHeldReads(2);
  const absl::Time deadline = absl::UnixEpoch() + absl::Seconds(1);
  OutFetch late = StartFetch(*store_, manifest_, 0, {0, 1000}, deadline);
  EXPECT_EQ(store_->stats().queued_reads, 6u);
  OutFetch refused = StartFetch(*store_, manifest_, 0, {0});
  EXPECT_THAT(refused.Wait(),
              IsError(absl::StatusCode::kResourceExhausted, ::testing::_));
  clock.Advance(absl::Seconds(2));
  EXPECT_THAT(late.Wait(),
              IsError(absl::StatusCode::kDeadlineExceeded, ::testing::_));
  const int reads = files_.reads();
  files_.HoldReadsOf("");
  EXPECT_THAT(held.Wait(), IsOk());
  EXPECT_EQ(files_.reads(), reads + 2);  // those of `held` alone
}

}  // namespace
}  // namespace engram::test
