#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_FLAT_STORE_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_FLAT_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "table_server/store/faulty_files.h"
#include "table_server/store/flat_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/store/store_rows.h"

namespace engram::test {

// A flat store of SmallManifest on a disk with faults.
class FlatStoreFixture : public ::testing::Test {
 protected:
  FlatStoreFixture() {
    std::filesystem::create_directory(dir_.File("scratch"));
    options_.dir = dir_.File("store");
    options_.reads.thread_count = 4;
    options_.files = &files_;
  }

  void Open() {
    store_.reset();
    auto store = FlatStore::Open(manifest_, options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  // Of the first layer.
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }
  RowId FirstRow(uint32_t partition) const {
    return static_cast<RowId>(partition * manifest_.partition_rows());
  }
  void PutMadeUpTo(uint32_t count) {
    for (uint32_t p = 0; p < count; ++p) {
      ASSERT_THAT(PutMade(*store_, manifest_, Ref(p)), IsOk());
    }
  }
  void ExpectWhole(uint32_t partition) {
    const auto rows = ReadPartition(*store_, manifest_, Ref(partition));
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(*rows, MadePartition(manifest_, Ref(partition)));
  }

  std::string VersionDir() const {
    return absl::StrCat(options_.dir, "/", VersionDirName(manifest_.version()));
  }
  std::string PathOf(uint32_t partition) const {
    return absl::StrCat(VersionDir(), "/layer-", ToInt(Ref(0).layer), "/",
                        partition, ".rows");
  }
  static void Overwrite(const std::string& path, uint64_t offset,
                        const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ENGRAM_CHECK(file.good());
  }
  static void FlipByte(const std::string& path, uint64_t offset) {
    const char byte = ReadAll(path).at(offset);
    Overwrite(path, offset, std::string(1, static_cast<char>(byte ^ 4)));
  }

  const Manifest& manifest_ = SmallManifest();
  const TempDir dir_;
  FaultyFiles files_{dir_.File("scratch")};
  FlatStore::Options options_;
  std::unique_ptr<FlatStore> store_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_FLAT_STORE_FIXTURE_H_
