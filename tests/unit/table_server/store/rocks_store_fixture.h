#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_ROCKS_STORE_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_ROCKS_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "table_server/store/rocks_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/store/store_files_of.h"
#include "tests/unit/table_server/store/store_rows.h"

namespace engram::test {

// A RocksDB store of SmallManifest.
class RocksStoreFixture : public ::testing::Test {
 protected:
  RocksStoreFixture() {
    options_.dir = dir_.File("store");
    options_.reads.thread_count = 2;
  }
  void Open() {
    store_.reset();
    auto store = RocksStore::Open(manifest_, options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }
  RowId FirstRow(uint32_t partition) const {
    return static_cast<RowId>(partition * manifest_.partition_rows());
  }
  // The database of the store, which is closed.
  std::unique_ptr<RocksDatabase> OpenDatabase() {
    store_.reset();
    const std::string version = VersionDirName(manifest_.version());
    return RocksDatabase::Open({.dir = options_.dir + "/rocksdb",
                                .families = {version + "/layer-1"},
                                .marker_family = version + "/markers",
                                .block_bytes = 500,
                                .max_open_files = 100})
        .value();
  }
  // Over the file that is there, as if another were just coming in. The store
  // is closed then.
  void PutOver(uint32_t partition) {
    const auto database = OpenDatabase();
    const RocksKey first = RocksKey::OfBlock(PartitionId{partition}, 0);
    rocksdb::DB& db = database->db();
    ASSERT_TRUE(db.Put({}, database->family(0), first.slice(), "new").ok());
    ASSERT_TRUE(db.Flush({}, database->family(0)).ok());
    ASSERT_EQ(database->FilesOf(0).front().level, 0);
  }
  std::string FileOf(uint32_t partition) const {
    return FileWith(options_.dir,
                    MadeRows(manifest_, Ref(0).layer, {FirstRow(partition)}));
  }

  const Manifest& manifest_ = SmallManifest();
  const TempDir dir_;
  RocksStore::Options options_;
  std::unique_ptr<RocksStore> store_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_ROCKS_STORE_FIXTURE_H_
