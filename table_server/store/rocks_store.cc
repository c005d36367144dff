#include "table_server/store/rocks_store.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "table_server/store/block_fetch.h"

namespace engram {
namespace {

constexpr size_t kReadAheadBytes = size_t{4} << 20;
constexpr size_t kToldBytes = size_t{1} << 20;
// Of a file: an entry of the index for each block, properties and a footer.
constexpr uint64_t kIndexBytesPerBlock = 48;
constexpr uint64_t kFileOverheadBytes = 16 << 10;
// Of a file that is open.
constexpr uint64_t kReaderBytes = 16 << 10;

absl::Span<const std::byte> BytesOf(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
}

rocksdb::ReadOptions Uncached() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

}  // namespace

class RocksStore::BlockGet final : public BlockFetch {
 public:
  BlockGet(RocksStore& store, RowFetch fetch)
      : BlockFetch({.manifest = store.manifest_,
                    .index = store.index_,
                    .store = store.db_dir_,
                    .rows_per_block = store.rows_per_block_},
                   std::move(fetch)),
        store_(store) {}

 protected:
  absl::Status ReadBlock(const PartitionRef& ref,
                         const BlockRead& read) override {
    const StoredIndex::Seen seen =
        store_.index_.Look(layer_index(), ref.partition);
    rocksdb::PinnableSlice block;
    const rocksdb::Status got = store_.db_->db().Get(
        Uncached(), store_.db_->family(layer_index()),
        RocksKey::OfBlock(ref.partition, read.block).slice(), &block);
    absl::Status status =
        got.ok() ? absl::OkStatus() : FromRocks(got, store_.NameOf(ref));
    if (status.ok() && block.size() != BlockBytes(ref, read.block)) {
      status = absl::DataLossError(absl::StrCat(
          store_.NameOf(ref), ": block ", read.block, " has ", block.size(),
          " bytes, not ", BlockBytes(ref, read.block)));
    }
    if (!status.ok()) {
      return store_.ReadError(std::move(status), layer_index(), ref, seen);
    }
    store_.counters_.CountRead(block.size());
    CopyRows(read, BytesOf(block));
    return absl::OkStatus();
  }

 private:
  size_t BlockBytes(const PartitionRef& ref, uint32_t block) const {
    const uint64_t per_block = store_.rows_per_block_;
    const uint64_t rows = manifest().RowsIn(layer_index(), ref.partition);
    return std::min(per_block, rows - std::min(rows, block * per_block)) *
           manifest().row_format().row_bytes();
  }

  RocksStore& store_;
};

std::string RocksStore::description() const {
  return absl::StrCat("RocksDB store ", db_dir_);
}

std::string RocksStore::NameOf(const PartitionRef& ref) const {
  return absl::StrCat(db_dir_, ", partition ", ToInt(ref.partition),
                      " of layer ", ToInt(ref.layer));
}

std::string RocksStore::MarkerOf(size_t layer_index,
                                 const PartitionRef& ref) const {
  return absl::StrCat("engram-rows/1 version ", manifest_.version(), " layer ",
                      ToInt(ref.layer), " partition ", ToInt(ref.partition),
                      " rows ", manifest_.RowsIn(layer_index, ref.partition),
                      " row_bytes ", manifest_.row_format().row_bytes(),
                      " rows_per_block ", rows_per_block_);
}

std::string RocksStore::PlaceOf(const PartitionRef& ref) const {
  const auto layer_index = manifest_.IndexOf(ref.layer);
  if (layer_index.ok()) {
    for (const auto& file : db_->FilesOf(*layer_index)) {
      if (file.first == ref.partition) return db_dir_ + file.name;
    }
  }
  return NameOf(ref);
}

uint64_t RocksStore::BlocksOf(const PartitionRef& ref) const {
  const uint64_t rows =
      manifest_.RowsIn(*manifest_.IndexOf(ref.layer), ref.partition);
  return (rows + rows_per_block_ - 1) / rows_per_block_;
}

uint64_t RocksStore::DiskBytesOf(const PartitionRef& ref) const {
  return BlocksOf(ref) * (RocksDatabase::DiskBytesOfBlock(block_bytes()) +
                          kIndexBytesPerBlock) +
         kFileOverheadBytes;
}

uint64_t RocksStore::MemoryBytesOf(absl::Span<const PartitionRef> refs) const {
  std::vector<uint64_t> bytes;
  bytes.reserve(refs.size());
  for (const PartitionRef& ref : refs) {
    bytes.push_back(BlocksOf(ref) * kIndexBytesPerBlock + kReaderBytes);
  }
  std::sort(bytes.begin(), bytes.end(), std::greater<>());
  // RocksDB may take another limit than it was given.
  const auto open =
      static_cast<size_t>(db_->db().GetDBOptions().max_open_files);
  bytes.resize(std::min(bytes.size(), open));
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

bool RocksStore::Has(const PartitionRef& ref) const {
  const auto layer_index = manifest_.IndexOf(ref.layer);
  return layer_index.ok() && index_.Has(*layer_index, ref.partition);
}

absl::Status RocksStore::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const StoredIndex::Seen seen = index_.Look(layer_index, ref.partition);
  if (!index_.Has(layer_index, ref.partition)) {
    return absl::NotFoundError(absl::StrCat(NameOf(ref), " is not there"));
  }
  if (options_.read_only) {  // otherwise it was looked at
    absl::Status status = CheckMarker(layer_index, ref);
    if (!status.ok()) {
      return ReadError(std::move(status), layer_index, ref, seen);
    }
  }
  const RocksKey begin = RocksKey::OfBlock(ref.partition, 0);
  const RocksKey end = RocksKey::OfBlock(ref.partition, UINT32_MAX);
  const rocksdb::Slice last = end.slice();
  rocksdb::ReadOptions options = Uncached();
  options.readahead_size = kReadAheadBytes;
  options.iterate_upper_bound = &last;
  const std::unique_ptr<rocksdb::Iterator> blocks(
      db_->db().NewIterator(options, db_->family(layer_index)));
  blocks->Seek(begin.slice());
  absl::Status stopped;
  absl::Status status = CopyBlocks(*blocks, ref, out, on_bytes, stopped);
  if (status.ok() || !stopped.ok()) return status;
  return ReadError(std::move(status), layer_index, ref, seen);
}

absl::Status RocksStore::CheckMarker(size_t layer_index,
                                     const PartitionRef& ref) const {
  std::string marker;
  ENGRAM_RETURN_IF_ERROR(
      FromRocks(db_->db().Get(rocksdb::ReadOptions(), db_->marker_family(),
                              RocksKey::OfMarker(ref).slice(), &marker),
                NameOf(ref)));
  const uint64_t file_bytes = file_bytes_[layer_index][ToInt(ref.partition)];
  if (file_bytes > 0 && marker == MarkerOf(layer_index, ref)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(NameOf(ref), ": its marker is \"",
                                          marker, "\", its file has ",
                                          file_bytes, " bytes"));
}

absl::Status RocksStore::CopyBlocks(
    rocksdb::Iterator& blocks, const PartitionRef& ref,
    absl::Span<std::byte> out, absl::FunctionRef<absl::Status(size_t)> on_bytes,
    absl::Status& stopped) {
  size_t untold = 0;
  for (uint32_t block = 0; !out.empty(); ++block, blocks.Next()) {
    if (!blocks.status().ok()) return FromRocks(blocks.status(), NameOf(ref));
    const size_t wanted = std::min(block_bytes(), out.size());
    if (!blocks.Valid() ||
        blocks.key() != RocksKey::OfBlock(ref.partition, block).slice() ||
        blocks.value().size() != wanted) {
      return absl::DataLossError(
          absl::StrCat(NameOf(ref), ": block ", block, " is not there"));
    }
    std::memcpy(out.data(), blocks.value().data(), wanted);
    out.remove_prefix(wanted);
    untold += wanted;
    if (untold < kToldBytes && !out.empty()) continue;
    counters_.read_bytes.fetch_add(untold, std::memory_order_relaxed);
    stopped = on_bytes(std::exchange(untold, 0));
    ENGRAM_RETURN_IF_ERROR(stopped);
  }
  return absl::OkStatus();
}

void RocksStore::Fetch(RowFetch fetch, OnRows done) {
  const size_t max_reads = fetch.wanted.size();
  const absl::Time deadline = fetch.deadline;
  pool_.Run(std::make_unique<BlockGet>(*this, std::move(fetch)), max_reads,
            deadline,
            [this, done = std::move(done)](absl::Status status) mutable {
              counters_.CountFetch(status);
              done(std::move(status));
            });
}

absl::Status RocksStore::ReadError(absl::Status status, size_t layer_index,
                                   const PartitionRef& ref,
                                   StoredIndex::Seen seen) {
  return failed_reads_.End(std::move(status), layer_index, ref.partition, seen,
                           [&] { return DropFiles(layer_index, ref); });
}

StoreStats RocksStore::stats() const {
  StoreStats stats;
  counters_.CopyTo(stats);
  stats.queued_reads = pool_.queued();
  stats.max_queued_reads = pool_.max_queued();
  stats.open_files = db_->open_files();
  stats.max_open_files = static_cast<uint64_t>(db_->options().max_open_files);
  stats.partitions = index_.count();
  stats.disk_bytes = disk_bytes();
  stats.max_bytes = options_.max_bytes;
  stats.other_version_bytes = room_.other_bytes();
  stats.index_bytes = db_->index_bytes();
  stats.background_errors = db_->background_errors();
  return stats;
}

}  // namespace engram
