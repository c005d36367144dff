// A disk that cannot read what it has.

#include <cerrno>
#include <filesystem>

#include "core/base/clock.h"
#include "table_server/store/damaged_partition.h"
#include "table_server/store/media_errors.h"
#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FlatStoreMediaTest : public FlatStoreFixture {
 protected:
  FlatStoreMediaTest() { options_.clock = &clock_; }
  ~FlatStoreMediaTest() override { store_.reset(); }

  FakeClock clock_{absl::UnixEpoch()};
};

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// A bad sector stays bad until it is written to, however well the others are
// read meanwhile.
TEST_F(FlatStoreMediaTest, CopyThatTheDiskFailsThreeTimesIsDropped) {
  Open();
  PutMadeUpTo(2);
  const uint64_t bytes = store_->disk_bytes();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) {
      files_.FailReadsOf("/1.rows");
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}),
                  IsError(kUnavailable, HasSubstr(PathOf(1))));
      files_.FailReadsOf("");
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(1)}), IsOk());
      clock_.Advance(MediaErrors::kSpacing);
    }
    ASSERT_TRUE(store_->Has(Ref(1)));
    files_.FailReadsOf("/1.rows");
    const auto lost = FetchRows(*store_, manifest_, 0, {0, FirstRow(1)});
    EXPECT_THAT(lost,
                IsError(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr(PathOf(1)), HasSubstr("Input/output"),
                              HasSubstr("3 times"))));
    EXPECT_EQ(DamagedPartitionOf(lost.status()), Ref(1));
    EXPECT_FALSE(store_->Has(Ref(1)));
    EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
    EXPECT_EQ(store_->disk_bytes(), bytes / 2);
    EXPECT_EQ(store_->stats().dropped_damaged, 1u + round);
    files_.FailReadsOf("");
    PutMadeUpTo(2);  // of which nothing has failed yet
    ExpectWhole(1);
  }
  EXPECT_EQ(store_->stats().read_errors, 6u);
  EXPECT_EQ(store_->stats().corrupt_blocks, 0u);
  ExpectWhole(0);
}

TEST_F(FlatStoreMediaTest, ReadsOfAllThatTheDiskFailsCountToo) {
  Open();
  PutMadeUpTo(1);
  files_.FailReadsOf("/0.rows");
  for (const auto code :
       {kUnavailable, kUnavailable, absl::StatusCode::kDataLoss}) {
    EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0)),
                IsError(code, HasSubstr(PathOf(0))));
    clock_.Advance(MediaErrors::kSpacing);
  }
  EXPECT_FALSE(store_->Has(Ref(0)));
}

// As of a controller that starts again.
TEST_F(FlatStoreMediaTest, ManyAtOnceAreOne) {
  Open();
  PutMadeUpTo(1);
  files_.FailReadsOf("/0.rows");
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
                IsError(kUnavailable, HasSubstr(PathOf(0))));
    clock_.Advance((MediaErrors::kSpacing * 2 - absl::Nanoseconds(100)) / 100);
  }
  files_.FailReadsOf("");
  ExpectWhole(0);
}

TEST_F(FlatStoreMediaTest, OtherReadErrorsDropNothingHoweverMany) {
  options_.max_open_files = 1;
  Open();
  PutMadeUpTo(1);
  for (const int error : {EMFILE, ENOMEM, EAGAIN}) {
    files_.FailReadsOf("/0.rows", error);
    for (int i = 0; i < 5; ++i) {
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
                  IsError(kUnavailable, HasSubstr(PathOf(0))));
      clock_.Advance(MediaErrors::kSpacing);
    }
  }
  files_.FailReadsOf("");
  EXPECT_TRUE(store_->Has(Ref(0)));
  ExpectWhole(0);
}

TEST_F(FlatStoreMediaTest, WhatIsReadOnlyIsKeptHoweverOftenTheDiskFails) {
  Open();
  PutMadeUpTo(1);
  options_.read_only = true;
  Open();
  files_.FailReadsOf("/0.rows");
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0)),
                IsError(kUnavailable, HasSubstr(PathOf(0))));
    clock_.Advance(MediaErrors::kSpacing);
  }
  EXPECT_TRUE(std::filesystem::exists(PathOf(0)));
}

}  // namespace
}  // namespace engram::test
