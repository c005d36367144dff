#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_TABLE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_TABLE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "engram_client/ctl/wanted_partitions.h"
#include "table_server/loading/make_partition_source.h"
#include "table_server/loading/open_local_store.h"
#include "table_server/loading/table_source.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {

// A small checkpoint with its manifest, and room for stores beside it.
class MadeUpTable : public ::testing::Test {
 protected:
  static constexpr uint32_t kDamaged = 2;  // by DamageCheckpoint

  MadeUpTable() {
    std::filesystem::create_directory(checkpoint_);
    test::CheckpointMaker("tiny").Write(checkpoint_);
    ENGRAM_CHECK(
        test::WriteManifest(checkpoint_, {.partition_rows = 4096}).ok());
    source_ = std::make_unique<TableSource>(
        OpenCheckpointSource(checkpoint_).value());
    partitions_ = MakePartitionSource(*source_);
    all_ = WantedPartitions(manifest(), {}).value();
  }

  const Manifest& manifest() const { return source_->manifest; }

  std::unique_ptr<LocalStore> OpenStore(const std::string& kind) {
    return OpenLocalStore(manifest(),
                          LocalStorePlace::Parse(StoreOf(kind)).value(), {})
        .value();
  }
  std::unique_ptr<LocalStore> OpenStoreToRead(const std::string& kind) {
    return OpenLocalStoreToRead(manifest(),
                                LocalStorePlace::Parse(StoreOf(kind)).value())
        .value();
  }
  std::string StoreOf(const std::string& kind) const {
    return kind + ":" + dir_.File("store");
  }

  std::string RowsOf(const PartitionRef& ref) {
    std::string rows(BytesOf(manifest(), ref), '\0');
    ENGRAM_CHECK(
        partitions_
            ->Read(ref, Writable(rows), [](size_t) { return absl::OkStatus(); })
            .ok());
    return rows;
  }
  std::string RowsIn(LocalStore& store, const PartitionRef& ref) {
    std::string rows(BytesOf(manifest(), ref), '\0');
    EXPECT_THAT(store.Read(ref, Writable(rows),
                           [](size_t) { return absl::OkStatus(); }),
                test::IsOk());
    return rows;
  }

  // Turns a bit of a code in partition kDamaged of the first layer.
  std::string DamageCheckpoint() {
    const TensorView& codes = source_->checkpoint->layers()[0].embed_weight;
    const uint64_t row = kDamaged * manifest().partition_rows() + 5;
    const auto offset =
        codes.bytes.data() - codes.file->bytes().data() + row * codes.shape[1];
    FlipBit(codes.file->path(), static_cast<uint64_t>(offset));
    return codes.file->path();
  }
  static void FlipBit(const std::string& path, uint64_t offset) {
    const char byte = test::ReadAll(path).at(offset);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    ENGRAM_CHECK(file.good());
  }

  const test::TempDir dir_;
  const std::string checkpoint_ = dir_.File("checkpoint");
  std::unique_ptr<TableSource> source_;
  std::unique_ptr<PartitionSource> partitions_;
  std::vector<PartitionRef> all_;

 private:
  static absl::Span<std::byte> Writable(std::string& text) {
    return {reinterpret_cast<std::byte*>(text.data()), text.size()};
  }
};

}  // namespace engram::ctl

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_TABLE_H_
