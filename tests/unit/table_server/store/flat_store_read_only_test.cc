// What only a flat store can have wrong, and leaves as it is when it is opened
// to be read only.

#include <filesystem>

#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

class FlatStoreReadOnlyTest : public FlatStoreFixture {
 protected:
  void PutAndOpenToRead() {
    Open();
    PutMadeUpTo(3);
    store_.reset();
    options_.read_only = true;
  }
  void ExpectDamagedAndLeft(uint32_t partition) {
    Open();
    EXPECT_EQ(store_->Partitions().size(), 3u);
    EXPECT_THAT(
        ReadPartition(*store_, manifest_, Ref(partition)),
        IsError(absl::StatusCode::kDataLoss, HasSubstr(PathOf(partition))));
    ExpectWhole(0);
    EXPECT_TRUE(std::filesystem::exists(PathOf(partition)));
  }
};

TEST_F(FlatStoreReadOnlyTest, TruncatedFile) {
  PutAndOpenToRead();
  std::filesystem::resize_file(PathOf(1), 4096 * 3);
  ExpectDamagedAndLeft(1);
  std::filesystem::resize_file(PathOf(2), 0);
  ExpectDamagedAndLeft(2);
}

TEST_F(FlatStoreReadOnlyTest, AnyByteOfTheHeader) {
  PutAndOpenToRead();
  FlipByte(PathOf(1), 2);
  FlipByte(PathOf(2), 20);
  ExpectDamagedAndLeft(1);
  ExpectDamagedAndLeft(2);
}

TEST_F(FlatStoreReadOnlyTest, FileOfAnotherPartition) {
  PutAndOpenToRead();
  std::filesystem::copy_file(PathOf(0), PathOf(1),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectDamagedAndLeft(1);
}

TEST_F(FlatStoreReadOnlyTest, WhatWasHalfWrittenIsNotThereAndLeft) {
  PutAndOpenToRead();
  const std::string half = PathOf(4) + ".tmp";
  std::filesystem::copy_file(PathOf(0), half);
  Open();
  EXPECT_EQ(store_->Partitions().size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(half));
  EXPECT_EQ(store_->stats().removed_half_written, 0u);
}

// It came to its end before it had made them all.
TEST_F(FlatStoreReadOnlyTest, DirectoryOfALayerMayBeMissing) {
  PutAndOpenToRead();
  std::filesystem::remove(absl::StrCat(VersionDir(), "/layer-",
                                       ToInt(manifest_.layers()[1].layer_id)));
  Open();
  EXPECT_EQ(store_->Partitions().size(), 3u);
}

}  // namespace
}  // namespace engram::test
