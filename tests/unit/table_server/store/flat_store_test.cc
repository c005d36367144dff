#include "table_server/store/flat_store.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "table_server/store/flat_page.h"
#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

class FlatStoreTest : public FlatStoreFixture {
 protected:
  // 4096 rows of 33 bytes, 123 a page.
  static constexpr uint32_t kPages = 34;
  static constexpr RowId kRowsPerPage = 123;
};

TEST_F(FlatStoreTest, FlippedByteOfAnyPageIsFoundAndNamed) {
  Open();
  PutMadeUpTo(2);
  for (uint32_t page = 0; page < kPages; ++page) {
    const uint64_t at = kFlatHeaderBytes + page * 4096 + page * 100;
    FlipByte(PathOf(1), at);
    // Other pages and partitions are as they were.
    const std::vector<RowId> others = {
        FirstRow(1) + (page + 1) % kPages * kRowsPerPage, 0, 4095};
    const auto got = FetchRows(*store_, manifest_, 0, others);
    ASSERT_THAT(got, IsOk());
    ASSERT_EQ(*got, MadeRows(manifest_, Ref(1).layer, others));
    const RowId row = FirstRow(1) + page * kRowsPerPage;
    const auto names_it = AllOf(HasSubstr(PathOf(1)),
                                HasSubstr(absl::StrCat("page ", page, " ")));
    ASSERT_THAT(FetchRows(*store_, manifest_, 0, {0, row}),
                IsError(kDataLoss, names_it));
    PutMadeUpTo(2);
    FlipByte(PathOf(1), at);
    ASSERT_THAT(ReadPartition(*store_, manifest_, Ref(1)),
                IsError(kDataLoss, names_it));
    PutMadeUpTo(2);
  }
  ExpectWhole(0);
  ExpectWhole(1);
  EXPECT_EQ(store_->stats().corrupt_blocks, 2 * kPages);
  EXPECT_EQ(store_->stats().dropped_damaged, 2 * kPages);
  EXPECT_EQ(store_->stats().read_errors, 0u);
}

TEST_F(FlatStoreTest, SwappedPagesAreFound) {
  Open();
  for (const uint32_t page : {0u, 1u}) {
    PutMadeUpTo(2);
    const std::string file = ReadAll(PathOf(0));
    Overwrite(PathOf(0), 4096, file.substr(2 * 4096, 4096));
    Overwrite(PathOf(0), 2 * 4096, file.substr(4096, 4096));
    EXPECT_THAT(
        FetchRows(*store_, manifest_, 0, {page * kRowsPerPage}),
        IsError(kDataLoss, HasSubstr(absl::StrCat("page ", page,
                                                  " says that it is page "))));
  }
  ExpectWhole(1);
}

// A page that was written to another file by mistake, or is stale.
TEST_F(FlatStoreTest, PageOfAnotherPartitionIsFound) {
  Open();
  PutMadeUpTo(2);
  Overwrite(PathOf(0), 3 * 4096, ReadAll(PathOf(1)).substr(3 * 4096, 4096));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {2 * kRowsPerPage}),
              IsError(kDataLoss, HasSubstr("page 2 is not what was put")));
}

TEST_F(FlatStoreTest, PutRepairs) {
  Open();
  PutMadeUpTo(1);
  FlipByte(PathOf(0), 5000);
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(kDataLoss, ::testing::_));
  PutMadeUpTo(1);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), IsOk());
  ExpectWhole(0);
}

TEST_F(FlatStoreTest, TruncatedFile) {
  const auto truncate = [&] {
    PutMadeUpTo(2);
    std::filesystem::resize_file(PathOf(0), 10 * 4096 + 100);
  };
  Open();
  truncate();
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {20 * kRowsPerPage}),
              IsError(kDataLoss, HasSubstr(PathOf(0))));
  EXPECT_FALSE(std::filesystem::exists(PathOf(0)));
  truncate();
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {9 * kRowsPerPage}),
              IsError(kDataLoss, HasSubstr("in the middle of a page")));
  truncate();
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), IsOk());
  Open();
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_FALSE(std::filesystem::exists(PathOf(0)));
  EXPECT_TRUE(store_->Has(Ref(1)));
  EXPECT_EQ(store_->stats().removed_damaged, 1u);
}

TEST_F(FlatStoreTest, RemovesWhatIsNotItsOwnWhenOpened) {
  Open();
  PutMadeUpTo(4);
  // Partition 0 under the name of 1; 2 with a bad header; half of 5.
  const std::string file = ReadAll(PathOf(0));
  Overwrite(PathOf(1), 0, file);
  FlipByte(PathOf(2), 40);
  dir_.Write(absl::StrCat("store/", VersionDirName(manifest_.version()),
                          "/layer-1/5.rows.tmp"),
             file.substr(0, 9000));
  const std::string stranger =
      dir_.Write(absl::StrCat("store/", VersionDirName(manifest_.version()),
                              "/layer-1/99.rows"),
                 "not of this table");
  Open();
  EXPECT_EQ(store_->Partitions(), (std::vector<PartitionRef>{Ref(0), Ref(3)}));
  ExpectWhole(0);
  ExpectWhole(3);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  EXPECT_FALSE(std::filesystem::exists(PathOf(2)));
  EXPECT_FALSE(std::filesystem::exists(PathOf(5) + ".tmp"));
  EXPECT_TRUE(std::filesystem::exists(stranger));
  EXPECT_EQ(store_->stats().removed_damaged, 2u);
  EXPECT_EQ(store_->stats().removed_half_written, 1u);
  EXPECT_EQ(store_->disk_bytes(), 2 * std::filesystem::file_size(PathOf(0)));
}

// The first 16 digits are alike, the file is not of this table.
TEST_F(FlatStoreTest, RemovesAFileOfAnotherVersion) {
  Open();
  PutMadeUpTo(1);
  std::vector<std::byte> page(kFlatHeaderBytes);
  WriteFlatHeader({.version = manifest_.version().substr(0, 63) + "g",
                   .ref = Ref(0),
                   .row_bytes = 33,
                   .rows = 4096},
                  absl::MakeSpan(page));
  Overwrite(PathOf(0), 0, {reinterpret_cast<char*>(page.data()), page.size()});
  Open();
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->stats().removed_damaged, 1u);
}

TEST_F(FlatStoreTest, NeedsNoMoreFilesThanItMayOpen) {
  options_.max_open_files = 8;  // one for each part of the cache
  Open();
  PutMadeUpTo(7);
  for (int round = 0; round < 5; ++round) {
    for (uint32_t p = 0; p < 7; ++p) {
      const auto got = FetchRows(*store_, manifest_, 0, {FirstRow(p) + 9});
      ASSERT_THAT(got, IsOk());
      EXPECT_EQ(*got, MadeRows(manifest_, Ref(0).layer, {FirstRow(p) + 9}));
    }
  }
  EXPECT_LE(store_->stats().open_files, 8u);
}

// However often others ask for more than there is.
TEST_F(FlatStoreTest, WhatFitsIsNotRefusedForThoseThatDoNot) {
  options_.files = &StoreFiles::Disk();
  Open();
  const PartitionRef last{manifest_.layers()[0].layer_id,
                          PartitionId{manifest_.partition_count(0) - 1}};
  options_.max_bytes = store_->DiskBytesOf(last);
  ASSERT_LT(options_.max_bytes, store_->DiskBytesOf(Ref(0)));
  Open();
  std::atomic<bool> stop{false};
  std::thread too_much([&] {
    while (!stop.load()) {
      EXPECT_EQ(PutMade(*store_, manifest_, Ref(0)).code(),
                absl::StatusCode::kResourceExhausted);
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(PutMade(*store_, manifest_, last), IsOk());
    EXPECT_THAT(store_->Remove(last), IsOk());
  }
  stop.store(true);
  too_much.join();
}

TEST_F(FlatStoreTest, NamesADirectoryThatCannotBeMade) {
  options_.dir = dir_.File("none/store");
  EXPECT_THAT(FlatStore::Open(manifest_, options_),
              IsError(absl::StatusCode::kNotFound, HasSubstr(options_.dir)));
}

}  // namespace
}  // namespace engram::test
