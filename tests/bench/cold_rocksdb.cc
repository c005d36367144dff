// RocksDB alone: direct reads, checksums, a block cache with the index in it,
// and MultiGet.

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/bench/cold_contestant.h"
#include "tests/bench/fan_out.h"

namespace engram::bench {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kRowsOfAPage = 15;
constexpr size_t kPutThreads = 2;
constexpr double kIndexShare = 0.1;  // of the cache, before data goes
constexpr int kShardBits = 6;
// Blocks stay in memory, whatever the cache may take, until they are copied.
constexpr size_t kKeysPerCall = 64;

using Key = std::array<char, 8>;

Key KeyOf(uint64_t value) {
  const uint64_t ordered = __builtin_bswap64(value);
  Key key;
  std::memcpy(key.data(), &ordered, key.size());
  return key;
}

rocksdb::Slice SliceOf(const Key& key) { return {key.data(), key.size()}; }

absl::Status FromRocksDb(const rocksdb::Status& status) {
  return status.ok() ? absl::OkStatus()
                     : absl::UnavailableError("RocksDB: " + status.ToString());
}

rocksdb::Options MakeOptions(uint64_t cache_bytes) {
  rocksdb::BlockBasedTableOptions blocks;
  if (cache_bytes > 0) {
    blocks.block_cache =
        rocksdb::NewLRUCache(cache_bytes, kShardBits,
                             /*strict_capacity_limit=*/false, kIndexShare);
    blocks.cache_index_and_filter_blocks = true;
  } else {
    blocks.no_block_cache = true;
  }
  blocks.block_size = kPageBytes;
  blocks.block_align = true;  // a block is one read of one page
  blocks.format_version = 5;
  blocks.data_block_index_type =
      rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.use_direct_reads = true;
  options.max_open_files = -1;
  options.write_buffer_size = 1 << 20;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  return options;
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDb(
    const std::string& dir, const rocksdb::Options& options) {
  rocksdb::DB* db = nullptr;
  ENGRAM_RETURN_IF_ERROR(
      FromRocksDb(rocksdb::DB::Open(options, dir + "/db", &db)));
  return std::unique_ptr<rocksdb::DB>(db);
}

absl::Status PutPartition(rocksdb::DB& db, const rocksdb::Options& options,
                          const SyntheticTable& table, uint32_t partition,
                          size_t rows_per_value, const std::string& path) {
  // Values do not reach from one file into the next.
  const size_t values = table.rows_per_partition() / rows_per_value;
  std::vector<std::byte> packed(table.partition_bytes());
  table.Fill(partition, absl::MakeSpan(packed));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  ENGRAM_RETURN_IF_ERROR(FromRocksDb(writer.Open(path)));
  const size_t value_bytes = rows_per_value * table.row_bytes();
  for (size_t at = 0; at < packed.size(); at += value_bytes) {
    const Key key =
        KeyOf(uint64_t{partition} * (values + 1) + at / value_bytes);
    ENGRAM_RETURN_IF_ERROR(FromRocksDb(
        writer.Put(SliceOf(key), {reinterpret_cast<const char*>(&packed[at]),
                                  std::min(value_bytes, packed.size() - at)})));
  }
  ENGRAM_RETURN_IF_ERROR(FromRocksDb(writer.Finish()));
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  return FromRocksDb(db.IngestExternalFile({path}, ingest));
}

template <size_t kRowsPerValue>
absl::Status Prepare(const SyntheticTable& table, const std::string& dir) {
  const rocksdb::Options options = MakeOptions(0);
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::DB> db,
                          OpenDb(dir, options));
  return table.ForPartitions(kPutThreads, [&](uint32_t partition) {
    return PutPartition(*db, options, table, partition, kRowsPerValue,
                        absl::StrCat(dir, "/", partition, ".sst"));
  });
}

template <size_t kRowsPerValue>
class RocksDb final : public ColdContestant {
 public:
  static absl::StatusOr<std::unique_ptr<ColdContestant>> Open(
      const SyntheticTable& table, const ColdOptions& options) {
    auto opened = std::unique_ptr<RocksDb>(new RocksDb(table, options.threads));
    ENGRAM_ASSIGN_OR_RETURN(
        opened->db_, OpenDb(options.dir, MakeOptions(options.cache_bytes)));
    return opened;
  }

  void SetFanOut(size_t parts) override { fan_out_.SetParts(parts); }

  absl::Status Gather(absl::Span<const RowId> row_ids,
                      absl::Span<std::byte> out) override {
    return fan_out_.Run(
        row_ids, out,
        [this](absl::Span<const RowId> ids,
               absl::Span<std::byte> slots) -> absl::Status {
          for (size_t at = 0; at < ids.size(); at += kKeysPerCall) {
            ENGRAM_RETURN_IF_ERROR(GetSome(ids.subspan(at, kKeysPerCall),
                                           slots.subspan(at * row_bytes_)));
          }
          return absl::OkStatus();
        });
  }

 private:
  RocksDb(const SyntheticTable& table, size_t threads)
      : row_bytes_(table.row_bytes()),
        rows_per_partition_(table.rows_per_partition()),
        fan_out_(threads) {}

  uint64_t ValueOf(RowId row) const {
    return row / rows_per_partition_ *
               (rows_per_partition_ / kRowsPerValue + 1) +
           row % rows_per_partition_ / kRowsPerValue;
  }
  size_t PlaceOf(RowId row) const {
    return row % rows_per_partition_ % kRowsPerValue * row_bytes_;
  }

  absl::Status GetSome(absl::Span<const RowId> row_ids,
                       absl::Span<std::byte> out) {
    std::vector<Key> keys(row_ids.size());
    std::vector<rocksdb::Slice> slices(row_ids.size());
    std::vector<rocksdb::PinnableSlice> values(row_ids.size());
    std::vector<rocksdb::Status> statuses(row_ids.size());
    for (size_t i = 0; i < row_ids.size(); ++i) {
      keys[i] = KeyOf(ValueOf(row_ids[i]));
      slices[i] = SliceOf(keys[i]);
    }
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(),
                  row_ids.size(), slices.data(), values.data(),
                  statuses.data());
    for (size_t i = 0; i < row_ids.size(); ++i) {
      const size_t place = PlaceOf(row_ids[i]);
      if (!statuses[i].ok() || values[i].size() < place + row_bytes_) {
        return absl::DataLossError(
            absl::StrCat("row ", row_ids[i], ": ", values[i].size(),
                         " bytes, RocksDB: ", statuses[i].ToString()));
      }
      std::memcpy(out.data() + i * row_bytes_, values[i].data() + place,
                  row_bytes_);
    }
    return absl::OkStatus();
  }

  const size_t row_bytes_;
  const uint64_t rows_per_partition_;
  std::unique_ptr<rocksdb::DB> db_;
  FanOut fan_out_;
};

}  // namespace

ColdKind ColdRocksDbRows() {
  return {"rocksdb_rows", Prepare<1>, RocksDb<1>::Open};
}
ColdKind ColdRocksDbBlocks() {
  return {"rocksdb_blocks", Prepare<kRowsOfAPage>, RocksDb<kRowsOfAPage>::Open};
}

}  // namespace engram::bench
