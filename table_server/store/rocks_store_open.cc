// What RocksStore does when it is opened.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "table_server/store/file_cache.h"
#include "table_server/store/rocks_store.h"
#include "table_server/store/store_files.h"
#include "table_server/store/store_manifest.h"

namespace engram {

absl::StatusOr<std::unique_ptr<RocksStore>> RocksStore::Open(
    const Manifest& manifest, const Options& options) {
  auto store = std::unique_ptr<RocksStore>(new RocksStore(manifest, options));
  if (options.read_only) {
    ENGRAM_ASSIGN_OR_RETURN(store->lock_,
                            StoreLock::TakeShared(store->ingest_dir_));
    ENGRAM_RETURN_IF_ERROR(store->OpenDatabase());
  } else {
    ENGRAM_RETURN_IF_ERROR(store->MakeDirs());
    ENGRAM_RETURN_IF_ERROR(store->OpenDatabase());
    ENGRAM_RETURN_IF_ERROR(store->LookAtOthers());
  }
  ENGRAM_RETURN_IF_ERROR(store->FindPartitions());
  return store;
}

RocksStore::RocksStore(const Manifest& manifest, const Options& options)
    : manifest_(manifest),
      options_(options),
      rows_per_block_(
          options.rows_per_block > 0
              ? options.rows_per_block
              : RocksDatabase::RowsPerBlock(manifest.row_format().row_bytes())),
      db_dir_(absl::StrCat(options.dir, "/rocksdb")),
      ingest_dir_(absl::StrCat(options.dir, "/rocksdb-ingest")),
      index_(manifest),
      room_(options.max_bytes),
      failed_reads_(index_, counters_, *options.clock, options.read_only),
      pool_(options.reads) {
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    file_bytes_.emplace_back(manifest.partition_count(i));
  }
}

absl::Status RocksStore::MakeDirs() {
  StoreFiles& files = StoreFiles::Disk();
  ENGRAM_RETURN_IF_ERROR(MakeStoreDir(files, options_.dir));
  for (const std::string& dir : {db_dir_, ingest_dir_}) {
    ENGRAM_RETURN_IF_ERROR(files.MakeDir(dir));
  }
  ENGRAM_RETURN_IF_ERROR(files.SyncDir(options_.dir));
  ENGRAM_ASSIGN_OR_RETURN(lock_, StoreLock::Take(ingest_dir_));
  return RemoveHalfWritten();
}

absl::Status RocksStore::OpenDatabase() {
  const std::string version = VersionDirName(manifest_.version());
  RocksDatabase::Options wanted{
      .dir = db_dir_,
      .marker_family = version + "/markers",
      .block_bytes = block_bytes(),
      .max_open_files = options_.max_open_files > 0
                            ? options_.max_open_files
                            : FileCache::DefaultMaxOpen(),
      .direct_io = options_.read_only ? ReadsDirectly(db_dir_ + "/CURRENT")
                                      : TakesDirectIo(ingest_dir_),
      .read_only = options_.read_only,
      .files = options_.files};
  for (const ManifestLayer& layer : manifest_.layers()) {
    wanted.families.push_back(
        absl::StrCat(version, "/layer-", ToInt(layer.layer_id)));
  }
  const auto is_damaged = [](const absl::Status& status) {
    return absl::IsDataLoss(status) || absl::IsNotFound(status);
  };
  auto opened = RocksDatabase::Open(wanted);
  if (!options_.read_only && is_damaged(opened.status())) {
    spdlog::error("{}", std::string(opened.status().message()));
    const auto removed = RocksDatabase::RemoveDamagedFiles(wanted);
    counters_.removed_damaged += removed.value_or(0);
    opened = removed.ok() ? RocksDatabase::Open(wanted) : removed.status();
    if (is_damaged(opened.status())) {
      return absl::DataLossError(
          absl::StrCat(opened.status().message(),
                       ": cannot be mended. If it stays so, remove ", db_dir_,
                       ": all of it is loaded anew then"));
    }
  }
  ENGRAM_RETURN_IF_ERROR(opened.status());
  db_ = *std::move(opened);
  return absl::OkStatus();
}

absl::Status RocksStore::LookAtOthers() {
  for (const std::string& other : db_->Others()) {
    spdlog::warn("{}: {} of another table version is {}", db_dir_, other,
                 options_.remove_other_versions ? "removed" : "left there");
  }
  const std::string manifests = ManifestsOfRocksStores(options_.dir);
  if (options_.remove_other_versions) {
    ENGRAM_RETURN_IF_ERROR(db_->DropOthers());
    ENGRAM_RETURN_IF_ERROR(
        RemoveOtherManifests(manifests, manifest_.version()));
  }
  room_.SetOthers(db_->OtherBytes());
  const absl::Status kept = KeepManifest(manifests, manifest_);
  if (!kept.ok()) {
    spdlog::warn("{} does without its manifest: {}", db_dir_,
                 std::string(kept.message()));
  }
  return absl::OkStatus();
}

absl::Status RocksStore::RemoveHalfWritten() {
  StoreFiles& files = StoreFiles::Disk();
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(ingest_dir_));
  for (const std::string& name : names) {
    if (name == "LOCK") continue;
    ENGRAM_RETURN_IF_ERROR(files.Remove(absl::StrCat(ingest_dir_, "/", name)));
    ++counters_.removed_half_written;
    spdlog::warn("{}/{} was written in part: removed", ingest_dir_, name);
  }
  return absl::OkStatus();
}

// As many at once as reads: each waits for the disk.
absl::Status RocksStore::FindPartitions() {
  ThreadPool threads({.thread_count = options_.reads.thread_count});
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> bytes, ListFiles(i));
    threads.ParallelFor(bytes.size(), [&](size_t p) {
      TakeIn(i, PartitionId{static_cast<uint32_t>(p)}, bytes[p]);
    });
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> RocksStore::ListFiles(
    size_t layer_index) {
  std::vector<uint64_t> bytes(manifest_.partition_count(layer_index));
  const auto is_own = [&](const RocksDatabase::BlockFile& file) {
    return file.first == file.last && ToInt(file.first) < bytes.size();
  };
  if (!options_.read_only) {
    const absl::Status moved = db_->MoveToLastLevel(layer_index);
    if (!moved.ok()) {
      stopped_ = true;
      spdlog::warn("{}", std::string(moved.message()));
    }
  }
  for (const auto& file : db_->FilesOf(layer_index)) {
    if (is_own(file) || options_.read_only) continue;
    spdlog::error("{}: removed a file with blocks of partitions {} to {}",
                  db_dir_, ToInt(file.first), ToInt(file.last));
    ++counters_.removed_damaged;
    ENGRAM_RETURN_IF_ERROR(
        db_->DeleteFiles(layer_index, file.first, file.last));
  }
  for (const auto& file : db_->FilesOf(layer_index)) {
    if (is_own(file)) bytes[ToInt(file.first)] += file.bytes;
  }
  return bytes;
}

void RocksStore::TakeIn(size_t layer_index, PartitionId partition,
                        uint64_t file_bytes) {
  const PartitionRef ref = {manifest_.layers()[layer_index].layer_id,
                            partition};
  file_bytes_[layer_index][ToInt(partition)] = file_bytes;
  room_.Add(file_bytes);
  if (options_.read_only && !db_->HasMarkers()) return;
  std::string marker;
  const rocksdb::Status got =
      db_->db().Get(rocksdb::ReadOptions(), db_->marker_family(),
                    RocksKey::OfMarker(ref).slice(), &marker);
  const bool has_marker = got.ok();
  if (options_.read_only) {
    // A file of markers that is gone says nothing about any of them.
    const bool unknown = !got.IsNotFound() || got.IsPathNotFound();
    if (has_marker || (unknown && file_bytes > 0)) {
      index_.SetThere(layer_index, partition);
    }
    return;
  }
  const absl::Status status = FromRocks(got, NameOf(ref));
  if (!has_marker && !absl::IsNotFound(status)) {
    counters_.CountReadError(status);
    spdlog::error("{}: does as if it were not there",
                  std::string(status.message()));
    return;
  }
  if (!has_marker && file_bytes == 0) return;
  if (file_bytes > 0 && marker == MarkerOf(layer_index, ref)) {
    index_.SetThere(layer_index, partition);
    return;
  }
  // A file that is gone was counted when it was found to be.
  if (file_bytes > 0) {
    ++(has_marker ? counters_.removed_damaged : counters_.removed_half_written);
  }
  spdlog::error("{}: removed, its marker is \"{}\", its file has {} bytes",
                NameOf(ref), marker, file_bytes);
  const absl::Status removed =
      file_bytes > 0 ? DropFiles(layer_index, ref) : WriteMarker(ref, "");
  if (!removed.ok()) spdlog::error("{}", std::string(removed.message()));
}

}  // namespace engram
