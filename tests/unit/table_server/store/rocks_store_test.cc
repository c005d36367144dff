#include "table_server/store/rocks_store.h"

#include <filesystem>

#include "tests/unit/table_server/store/rocks_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

using RocksStoreTest = RocksStoreFixture;

TEST_F(RocksStoreTest, CorruptBlockIsFoundAndNamed) {
  Open();
  for (const bool whole : {false, true}) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
    const std::string path = FileOf(0);
    ASSERT_TRUE(
        DamageRow(options_.dir, MadeRows(manifest_, Ref(0).layer, {0})));
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {3000, FirstRow(1)}), IsOk());
    const auto says = IsError(absl::StatusCode::kDataLoss, HasSubstr(path));
    if (whole) {
      EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0)), says);
    } else {
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), says);
    }
    EXPECT_EQ(store_->stats().corrupt_blocks, 1u);
    Open();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(1)), IsOk());
  }
}

// RocksDB finds nothing wrong with them.
TEST_F(RocksStoreTest, BlocksOfWrongSizeAndMissingOnesAreFound) {
  options_.rows_per_block = 15;
  Open();
  for (uint32_t p = 0; p < 3; ++p) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(p)), IsOk());
  }
  {
    const auto database = OpenDatabase();
    rocksdb::DB& db = database->db();
    rocksdb::ColumnFamilyHandle* const blocks = database->family(0);
    for (const uint32_t p : {0u, 1u}) {
      const RocksKey first = RocksKey::OfBlock(PartitionId{p}, 0);
      ASSERT_TRUE(db.Put({}, blocks, first.slice(), "short").ok());
      ASSERT_TRUE(db.Flush({}, blocks).ok());
    }
    const RocksKey third = RocksKey::OfBlock(PartitionId{2}, 2);
    ASSERT_TRUE(db.Delete({}, blocks, third.slice()).ok());
    ASSERT_TRUE(db.Flush({}, blocks).ok());
  }
  Open();
  const auto is_lost = [](const char* what) {
    return IsError(absl::StatusCode::kDataLoss, HasSubstr(what));
  };
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {15, 29, 45}), IsOk());
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              is_lost("block 0 has 5 bytes, not 495"));
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(1)), is_lost("block 0"));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(2) + 30}),
              is_lost("partition 2"));
}

TEST_F(RocksStoreTest, NoFileLiesOverAnother) {
  Open();
  for (const uint32_t p : {0u, 1u, 0u}) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(p)), IsOk());
  }
  const auto files = OpenDatabase()->FilesOf(0);
  EXPECT_EQ(files.size(), 2u);
  for (const auto& file : files) {
    EXPECT_EQ(file.level, rocksdb::Options().num_levels - 1);
  }
}

// RocksDB deletes none that do.
TEST_F(RocksStoreTest, FilesThatLieOverOthersAreRemovedWithThem) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  PutOver(0);
  PutOver(1);
  Open();
  for (const auto& file : OpenDatabase()->FilesOf(0)) EXPECT_GT(file.level, 0);
  PutOver(1);
  Open();
  EXPECT_EQ(store_->stats().partitions, 2u);
  ASSERT_THAT(store_->Remove(Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  ASSERT_THAT(ReadPartition(*store_, manifest_, Ref(1)), IsOk());
  ASSERT_THAT(store_->Remove(Ref(1)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), 0u);
  EXPECT_EQ(OpenDatabase()->FilesOf(0).size(), 0u);
}

TEST_F(RocksStoreTest, RemovesWhatWasHalfWritten) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  dir_.Write("store/rocksdb-ingest/1-3.sst", "half of it");
  // A file that came in and whose marker did not.
  {
    const auto database = OpenDatabase();
    ASSERT_TRUE(database->db()
                    .Delete({}, database->marker_family(),
                            RocksKey::OfMarker(Ref(1)).slice())
                    .ok());
  }
  Open();
  EXPECT_EQ(store_->stats().removed_half_written, 2u);
  EXPECT_EQ(store_->disk_bytes(), bytes / 2);
  EXPECT_EQ(store_->Partitions(), std::vector<PartitionRef>{Ref(0)});
  store_.reset();
  EXPECT_LT(RowFileBytes(options_.dir + "/rocksdb"), bytes);
}

// Another shape of the values is another partition.
TEST_F(RocksStoreTest, RemovesPartitionsOfOtherShape) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  options_.rows_per_block = 60;
  Open();
  EXPECT_EQ(store_->stats().removed_damaged, 1u);
  EXPECT_FALSE(store_->Has(Ref(0)));
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  Open();
  const auto rows = ReadPartition(*store_, manifest_, Ref(0));
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(*rows, MadePartition(manifest_, Ref(0)));
}

TEST_F(RocksStoreTest, OtherVersionsAreLeftUnlessTheyAreToGo) {
  const Manifest other = MakeManifest("tiny", 2048);
  {
    auto store = RocksStore::Open(other, options_);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(PutMade(**store, other, Ref(0)), IsOk());
  }
  Open();
  EXPECT_EQ(store_->disk_bytes(), 0u);
  EXPECT_GT(store_->stats().other_version_bytes, 2048u * 33);
  options_.remove_other_versions = true;
  Open();
  EXPECT_EQ(store_->stats().other_version_bytes, 0u);
}

// Somebody else's family in the same database.
TEST_F(RocksStoreTest, FamiliesOfNoStoreAreNeverRemoved) {
  Open();
  {
    const auto database = OpenDatabase();
    rocksdb::ColumnFamilyHandle* family = nullptr;
    for (const char* name : {"notes", "0123456789abcdef/notes", "layer-1"}) {
      ASSERT_TRUE(database->db().CreateColumnFamily({}, name, &family).ok());
      database->db().DestroyColumnFamilyHandle(family);
    }
  }
  options_.remove_other_versions = true;
  Open();
  store_.reset();
  std::vector<std::string> names;
  ASSERT_TRUE(
      rocksdb::DB::ListColumnFamilies({}, options_.dir + "/rocksdb", &names)
          .ok());
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"notes", "0123456789abcdef/notes", "layer-1"}));
}

// Of rows that have a block each.
TEST_F(RocksStoreTest, TellsItsOpenFilesAndTheMemoryOfTheirIndexes) {
  const Manifest manifest = MakeWideManifest(4064);
  auto store = RocksStore::Open(manifest, options_);
  ASSERT_THAT(store, IsOk());
  std::vector<PartitionRef> refs;
  for (const uint32_t p : {0u, 1u, 2u}) {
    refs.push_back({manifest.layers()[0].layer_id, PartitionId{p}});
    ASSERT_THAT(PutMade(**store, manifest, refs.back()), IsOk());
  }
  const std::vector<RowId> rows = {0, 256, 512};
  ASSERT_THAT(FetchRows(**store, manifest, 0, rows), IsOk());
  const StoreStats stats = (*store)->stats();
  EXPECT_GE(stats.open_files, 3u);
  EXPECT_LE(stats.open_files, 3u + 4);  // those of markers
  EXPECT_GT(stats.index_bytes, 3u * 256 * 16);
  EXPECT_LE(stats.index_bytes, (*store)->MemoryBytesOf(refs));
}

TEST_F(RocksStoreTest, MemoryIsForAsManyPartitionsAsMayBeOpen) {
  const Manifest manifest = MakeManifest("tiny", 512);
  options_.max_open_files = 20;  // RocksDB takes no less
  auto store = RocksStore::Open(manifest, options_);
  ASSERT_THAT(store, IsOk());
  const LayerId layer = manifest.layers()[0].layer_id;
  const PartitionRef last{layer, PartitionId{manifest.partition_count(0) - 1}};
  std::vector<PartitionRef> refs = {last};
  for (uint32_t p = 0; p < 19; ++p) refs.push_back({layer, PartitionId{p}});
  const uint64_t of_one = (*store)->MemoryBytesOf({{refs[1]}});
  const uint64_t of_last = (*store)->MemoryBytesOf({{last}});
  ASSERT_LT(of_last, of_one);  // it has fewer rows
  EXPECT_EQ((*store)->MemoryBytesOf(refs), 19 * of_one + of_last);
  refs.push_back({layer, PartitionId{19}});
  refs.push_back({layer, PartitionId{20}});
  EXPECT_EQ((*store)->MemoryBytesOf(refs), 20 * of_one);
}

TEST_F(RocksStoreTest, BlocksOfOneRow) {
  options_.rows_per_block = 1;
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  const auto got = FetchRows(*store_, manifest_, 0, {4095, 0, 77});
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, MadeRows(manifest_, Ref(0).layer, {4095, 0, 77}));
}

}  // namespace
}  // namespace engram::test
