// RocksDB inside this process: MultiGet from a block cache that holds the whole
// table.

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/bench/local_contestant.h"

namespace engram::bench {
namespace {

constexpr size_t kKeysPerCall = 1024;

using Key = std::array<char, 8>;

Key KeyOf(uint32_t index) {
  const uint64_t ordered = __builtin_bswap64(index);
  Key key;
  std::memcpy(key.data(), &ordered, key.size());
  return key;
}

absl::Status FromRocksDb(const rocksdb::Status& status) {
  return status.ok() ? absl::OkStatus()
                     : absl::InternalError("RocksDB: " + status.ToString());
}

rocksdb::Options MakeOptions(uint64_t table_bytes) {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.block_cache = rocksdb::NewLRUCache(table_bytes * 3 / 2 + (64 << 20));
  blocks.data_block_index_type =
      rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  return options;
}

class RocksDb final : public LocalContestant {
 public:
  explicit RocksDb(std::string dir) : dir_(std::move(dir)) {}
  ~RocksDb() override { StopThreads(); }

  absl::Status Connect(const RowTable& table) override {
    const rocksdb::Options options =
        MakeOptions(uint64_t{table.row_count()} * table.row_bytes());
    rocksdb::DB* db = nullptr;
    ENGRAM_RETURN_IF_ERROR(
        FromRocksDb(rocksdb::DB::Open(options, dir_ + "/db", &db)));
    db_.reset(db);
    ENGRAM_RETURN_IF_ERROR(Load(table, options));
    return WarmCache();
  }

 protected:
  absl::Status Gather(const Batch& batch, absl::Span<std::byte> out) override {
    const size_t row_bytes = out.size() / batch.indices.size();
    for (size_t at = 0; at < batch.indices.size(); at += kKeysPerCall) {
      ENGRAM_RETURN_IF_ERROR(GatherSome(batch.indices.subspan(at, kKeysPerCall),
                                        row_bytes,
                                        out.data() + at * row_bytes));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Load(const RowTable& table, const rocksdb::Options& options) {
    const std::string path = dir_ + "/rows.sst";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    ENGRAM_RETURN_IF_ERROR(FromRocksDb(writer.Open(path)));
    for (uint32_t i = 0; i < table.row_count(); ++i) {
      const Key key = KeyOf(i);
      ENGRAM_RETURN_IF_ERROR(FromRocksDb(writer.Put(
          {key.data(), key.size()},
          {reinterpret_cast<const char*>(table.row(i)), table.row_bytes()})));
    }
    ENGRAM_RETURN_IF_ERROR(FromRocksDb(writer.Finish()));
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    return FromRocksDb(db_->IngestExternalFile({path}, ingest));
  }

  absl::Status WarmCache() {
    const std::unique_ptr<rocksdb::Iterator> rows(
        db_->NewIterator(rocksdb::ReadOptions()));
    for (rows->SeekToFirst(); rows->Valid();) rows->Next();
    return FromRocksDb(rows->status());
  }

  absl::Status GatherSome(absl::Span<const uint32_t> indices, size_t row_bytes,
                          std::byte* out) {
    thread_local std::vector<Key> keys(kKeysPerCall);
    thread_local std::vector<rocksdb::Slice> slices(kKeysPerCall);
    thread_local std::vector<rocksdb::PinnableSlice> values(kKeysPerCall);
    thread_local std::vector<rocksdb::Status> statuses(kKeysPerCall);
    for (size_t i = 0; i < indices.size(); ++i) {
      keys[i] = KeyOf(indices[i]);
      slices[i] = {keys[i].data(), keys[i].size()};
    }
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(),
                  indices.size(), slices.data(), values.data(),
                  statuses.data());
    absl::Status status;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!statuses[i].ok() || values[i].size() != row_bytes) {
        status.Update(absl::DataLossError(
            absl::StrCat("row ", indices[i], " has ", values[i].size(),
                         " bytes, RocksDB: ", statuses[i].ToString())));
      } else {
        std::memcpy(out + i * row_bytes, values[i].data(), row_bytes);
      }
      values[i].Reset();
    }
    return status;
  }

  const std::string dir_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<GatherContestant> MakeRocksDb(
    const ContestantOptions& options) {
  return std::make_unique<RocksDb>(options.scratch_dir);
}

}  // namespace engram::bench
