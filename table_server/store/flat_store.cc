#include "table_server/store/flat_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "table_server/store/aligned_buffer.h"
#include "table_server/store/block_fetch.h"
#include "table_server/store/flat_file.h"

namespace engram {
namespace {

// A page's memory, one for each thread of a pool.
absl::Span<std::byte> ThreadsPage(size_t page_bytes) {
  thread_local AlignedBuffer page(page_bytes);
  if (page.bytes().size() < page_bytes) page = AlignedBuffer(page_bytes);
  return page.bytes().subspan(0, page_bytes);
}

}  // namespace

class FlatStore::PageFetch final : public BlockFetch {
 public:
  PageFetch(FlatStore& store, FlatHeader header, RowFetch fetch)
      : BlockFetch({.manifest = store.manifest_,
                    .index = store.index_,
                    .store = store.version_dir_,
                    .rows_per_block = header.rows_per_page()},
                   std::move(fetch)),
        store_(store),
        header_(std::move(header)) {}

 protected:
  absl::Status ReadBlock(const PartitionRef& ref,
                         const BlockRead& read) override {
    const StoredIndex::Seen seen =
        store_.index_.Look(layer_index(), ref.partition);
    const auto failed = [&](absl::Status status) {
      return store_.ReadError(std::move(status), layer_index(), ref, seen);
    };
    const auto file = store_.FileOf(ref);
    if (!file.ok()) return failed(file.status());
    const absl::Span<std::byte> page = ThreadsPage(header_.page_bytes());
    absl::Status status =
        ReadFlatPage(**file, store_.PathOf(ref), header_,
                     FlatSeal(header_.version, ref), read.block, page);
    if (!status.ok()) return failed(std::move(status));
    store_.counters_.CountRead(page.size());
    CopyRows(read, page);
    return absl::OkStatus();
  }

 private:
  FlatStore& store_;
  const FlatHeader header_;  // of any partition of the layer: pages are alike
};

FlatStore::FlatStore(const Manifest& manifest, const Options& options)
    : manifest_(manifest),
      options_(options),
      files_(*options.files),
      version_dir_(
          absl::StrCat(options.dir, "/", VersionDirName(manifest.version()))),
      index_(manifest),
      room_(options.max_bytes),
      failed_reads_(index_, counters_, *options.clock, options.read_only),
      open_files_(files_, options.max_open_files > 0
                              ? options.max_open_files
                              : FileCache::DefaultMaxOpen()),
      pool_(options.reads) {
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    file_bytes_.emplace_back(manifest.partition_count(i));
  }
}

std::string FlatStore::description() const {
  return absl::StrCat("flat store ", version_dir_);
}

uint64_t FlatStore::KeyOf(const PartitionRef& ref) {
  return uint64_t{ToInt(ref.layer)} << 32 | ToInt(ref.partition);
}

std::string FlatStore::LayerDir(LayerId layer) const {
  return absl::StrCat(version_dir_, "/layer-", ToInt(layer));
}

std::string FlatStore::PathOf(const PartitionRef& ref) const {
  return absl::StrCat(LayerDir(ref.layer), "/", ToInt(ref.partition), ".rows");
}

FlatHeader FlatStore::HeaderOf(size_t layer_index,
                               const PartitionRef& ref) const {
  return {
      .version = manifest_.version(),
      .ref = ref,
      .row_bytes = static_cast<uint32_t>(manifest_.row_format().row_bytes()),
      .rows = manifest_.RowsIn(layer_index, ref.partition)};
}

uint64_t FlatStore::DiskBytesOf(const PartitionRef& ref) const {
  return HeaderOf(*manifest_.IndexOf(ref.layer), ref).file_bytes();
}

bool FlatStore::Has(const PartitionRef& ref) const {
  const auto layer_index = manifest_.IndexOf(ref.layer);
  return layer_index.ok() && index_.Has(*layer_index, ref.partition);
}

absl::StatusOr<std::shared_ptr<const StoreFile>> FlatStore::FileOf(
    const PartitionRef& ref) {
  return open_files_.Get(KeyOf(ref), [&] { return PathOf(ref); });
}

absl::Status FlatStore::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const StoredIndex::Seen seen = index_.Look(layer_index, ref.partition);
  if (!index_.Has(layer_index, ref.partition)) {
    return absl::NotFoundError(absl::StrCat(PathOf(ref), " is not there"));
  }
  if (options_.read_only) {  // otherwise it was looked at
    const FlatHeader header = HeaderOf(layer_index, ref);
    absl::Status status = CheckFlatFile(files_, PathOf(ref), header);
    if (!status.ok()) {
      return ReadError(std::move(status), layer_index, ref, seen);
    }
  }
  const auto file = FileOf(ref);
  if (!file.ok()) return ReadError(file.status(), layer_index, ref, seen);
  absl::Status stopped;  // by the caller: no error of the disk
  absl::Status status = ReadFlatFile(
      **file, PathOf(ref), HeaderOf(layer_index, ref), out, [&](size_t bytes) {
        counters_.read_bytes.fetch_add(bytes, std::memory_order_relaxed);
        return stopped = on_bytes(bytes);
      });
  if (status.ok() || !stopped.ok()) return status;
  return ReadError(std::move(status), layer_index, ref, seen);
}

void FlatStore::Fetch(RowFetch fetch, OnRows done) {
  const size_t max_reads = fetch.wanted.size();
  const absl::Time deadline = fetch.deadline;
  FlatHeader header = HeaderOf(fetch.layer_index, {});
  pool_.Run(
      std::make_unique<PageFetch>(*this, std::move(header), std::move(fetch)),
      max_reads, deadline,
      [this, done = std::move(done)](absl::Status status) mutable {
        counters_.CountFetch(status);
        done(std::move(status));
      });
}

absl::Status FlatStore::ReadError(absl::Status status, size_t layer_index,
                                  const PartitionRef& ref,
                                  StoredIndex::Seen seen) {
  return failed_reads_.End(std::move(status), layer_index, ref.partition, seen,
                           [&] { return RemoveForGood(layer_index, ref); });
}

StoreStats FlatStore::stats() const {
  StoreStats stats;
  counters_.CopyTo(stats);
  stats.queued_reads = pool_.queued();
  stats.max_queued_reads = pool_.max_queued();
  stats.open_files = open_files_.open();
  stats.max_open_files = open_files_.max_open();
  stats.partitions = index_.count();
  stats.disk_bytes = disk_bytes();
  stats.max_bytes = options_.max_bytes;
  stats.other_version_bytes = room_.other_bytes();
  return stats;
}

}  // namespace engram
