// What only RocksDB can have wrong, and what is left as it is when a store is
// opened to be read only.

#include <filesystem>
#include <set>
#include <string>

#include "tests/unit/table_server/store/rocks_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

class RocksStoreReadOnlyTest : public RocksStoreFixture {
 protected:
  void SetUp() override {
    Open();
    for (uint32_t p = 0; p < 3; ++p) {
      ASSERT_THAT(PutMade(*store_, manifest_, Ref(p)), IsOk());
    }
    file_ = FileOf(1);
    ASSERT_NE(file_, "");
    store_.reset();
    options_.read_only = true;
  }
  void ExpectOnlyTheSecondDamaged() {
    ASSERT_NE(store_, nullptr);
    EXPECT_EQ(store_->Partitions().size(), 3u);
    for (const uint32_t p : {0u, 2u}) {
      EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(p)), IsOk());
    }
    EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(1)),
                IsError(absl::StatusCode::kDataLoss,
                        HasSubstr("partition 1 of layer 1")));
    EXPECT_TRUE(store_->Has(Ref(1)));
  }

  std::string file_;  // of the second
};

TEST_F(RocksStoreReadOnlyTest, NamesTheFileOfAPartition) {
  Open();
  EXPECT_EQ(store_->PlaceOf(Ref(1)), file_);
  EXPECT_THAT(store_->PlaceOf(Ref(4)), HasSubstr("partition 4 of layer 1"));
}

TEST_F(RocksStoreReadOnlyTest, FileIsGone) {
  std::filesystem::remove(file_);
  Open();
  ExpectOnlyTheSecondDamaged();
}

TEST_F(RocksStoreReadOnlyTest, FileIsTruncated) {
  std::filesystem::resize_file(file_, 8192);
  Open();
  ExpectOnlyTheSecondDamaged();
  store_.reset();
  std::filesystem::resize_file(file_, 0);
  Open();
  ExpectOnlyTheSecondDamaged();
}

TEST_F(RocksStoreReadOnlyTest, MarkerOfAnotherShape) {
  options_.read_only = false;
  {
    const auto database = OpenDatabase();
    rocksdb::WriteOptions unlogged;
    ASSERT_TRUE(database->db()
                    .Put(unlogged, database->marker_family(),
                         RocksKey::OfMarker(Ref(1)).slice(), "something else")
                    .ok());
  }
  options_.read_only = true;
  Open();
  ExpectOnlyTheSecondDamaged();
}

TEST_F(RocksStoreReadOnlyTest, FilesOfMarkersAreGone) {
  std::set<std::string> rows;
  for (uint32_t p = 0; p < 3; ++p) rows.insert(FileOf(p));
  size_t removed = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(options_.dir)) {
    if (entry.path().extension() != ".sst" || rows.contains(entry.path())) {
      continue;
    }
    std::filesystem::remove(entry.path());
    ++removed;
  }
  ASSERT_GT(removed, 0u);
  Open();
  EXPECT_EQ(store_->Partitions().size(), 3u);
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0)),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("partition 0")));
}

// It came to its end before it had made them all.
TEST_F(RocksStoreReadOnlyTest, FamiliesOfAVersionMayBeMissing) {
  const Manifest other = MakeWideManifest(32);
  const auto store = RocksStore::Open(other, options_);
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*store)->Partitions(), ::testing::IsEmpty());
  EXPECT_EQ((*store)->stats().index_bytes, 0u);
}

}  // namespace
}  // namespace engram::test
