// What FlatStore does when it is opened.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "table_server/store/flat_file.h"
#include "table_server/store/flat_store.h"
#include "table_server/store/store_manifest.h"

namespace engram {

absl::StatusOr<std::unique_ptr<FlatStore>> FlatStore::Open(
    const Manifest& manifest, const Options& options) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  if (row_bytes > kMaxFlatRowBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of ", row_bytes,
                     " bytes, the local store takes up to ", kMaxFlatRowBytes));
  }
  auto store = std::unique_ptr<FlatStore>(new FlatStore(manifest, options));
  if (options.read_only) {
    ENGRAM_ASSIGN_OR_RETURN(store->lock_,
                            StoreLock::TakeShared(store->version_dir_));
  } else {
    ENGRAM_RETURN_IF_ERROR(store->MakeDirs());
    ENGRAM_RETURN_IF_ERROR(store->LookAtOthers());
  }
  ENGRAM_RETURN_IF_ERROR(store->FindPartitions());
  return store;
}

absl::Status FlatStore::MakeDirs() {
  ENGRAM_RETURN_IF_ERROR(MakeStoreDir(files_, options_.dir));
  ENGRAM_RETURN_IF_ERROR(files_.MakeDir(version_dir_));
  ENGRAM_ASSIGN_OR_RETURN(lock_, StoreLock::Take(version_dir_));
  for (const ManifestLayer& layer : manifest_.layers()) {
    ENGRAM_RETURN_IF_ERROR(files_.MakeDir(LayerDir(layer.layer_id)));
  }
  ENGRAM_RETURN_IF_ERROR(files_.SyncDir(version_dir_));
  ENGRAM_RETURN_IF_ERROR(files_.SyncDir(options_.dir));
  const absl::Status kept =
      KeepManifest(ManifestsOfFlatStores(options_.dir), manifest_);
  if (!kept.ok()) {
    spdlog::warn("{} does without its manifest: {}", version_dir_,
                 std::string(kept.message()));
  }
  return absl::OkStatus();
}

absl::Status FlatStore::LookAtOthers() {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<StoredVersion> others,
                          OtherVersions(options_.dir, manifest_.version()));
  uint64_t left_bytes = 0;
  for (const StoredVersion& other : others) {
    const absl::Status removed =
        options_.remove_other_versions || other.half_removed
            ? RemoveVersion(options_.dir, other.name)
            : absl::FailedPreconditionError("removing is not asked for");
    if (removed.ok()) {
      spdlog::info("{}: removed table version {}, {} bytes", options_.dir,
                   other.name, other.bytes);
      continue;
    }
    left_bytes += other.bytes;
    spdlog::warn("{}: table version {} is left there, {} bytes: {}",
                 options_.dir, other.name, other.bytes,
                 std::string(removed.message()));
  }
  room_.SetOthers(left_bytes);
  return absl::OkStatus();
}

// The files that have a partition's name; half-written ones are removed.
absl::StatusOr<std::vector<PartitionRef>> FlatStore::ListLayer(
    size_t layer_index) {
  const LayerId layer = manifest_.layers()[layer_index].layer_id;
  const std::string dir = LayerDir(layer);
  const absl::StatusOr<std::vector<std::string>> names = files_.List(dir);
  std::vector<PartitionRef> refs;
  if (options_.read_only && absl::IsNotFound(names.status())) return refs;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    absl::string_view number = name;
    uint32_t partition = 0;
    if (absl::EndsWith(name, ".rows.tmp")) {
      if (options_.read_only) continue;
      ENGRAM_RETURN_IF_ERROR(files_.Remove(absl::StrCat(dir, "/", name)));
      ++counters_.removed_half_written;
      spdlog::warn("{}/{} was written in part: removed", dir, name);
    } else if (absl::ConsumeSuffix(&number, ".rows") &&
               absl::SimpleAtoi(number, &partition) &&
               partition < manifest_.partition_count(layer_index) &&
               absl::StrCat(partition) == number) {
      refs.push_back({layer, PartitionId{partition}});
    } else {
      spdlog::warn("{}/{} is no file of this store: left there", dir, name);
    }
  }
  return refs;
}

void FlatStore::TakeIn(const PartitionRef& ref, size_t layer_index) {
  const FlatHeader wanted = HeaderOf(layer_index, ref);
  const absl::Status status = options_.read_only
                                  ? absl::OkStatus()
                                  : CheckFlatFile(files_, PathOf(ref), wanted);
  // As far as is known: a file that cannot be looked at, or removed, has room
  // too.
  const auto take_room = [&] {
    FileBytes(layer_index, ref) = wanted.file_bytes();
    room_.Add(wanted.file_bytes());
  };
  if (status.ok()) {
    index_.SetThere(layer_index, ref.partition);
    take_room();
    return;
  }
  const bool remove = absl::IsDataLoss(status);
  ++(remove ? counters_.removed_damaged : counters_.read_errors);
  spdlog::error("{}{}", std::string(status.message()),
                remove ? ": removed" : ": does as if it were not there");
  const absl::Status removed =
      remove ? files_.Remove(PathOf(ref)) : absl::OkStatus();
  if (!removed.ok()) spdlog::error("{}", std::string(removed.message()));
  if (!remove || !removed.ok()) take_room();
}

// As many at once as reads: each waits for the disk.
absl::Status FlatStore::FindPartitions() {
  ThreadPool threads({.thread_count = options_.reads.thread_count});
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    ENGRAM_ASSIGN_OR_RETURN(const std::vector<PartitionRef> refs, ListLayer(i));
    threads.ParallelFor(refs.size(), [&](size_t at) { TakeIn(refs[at], i); });
    if (options_.read_only) continue;
    ENGRAM_RETURN_IF_ERROR(
        files_.SyncDir(LayerDir(manifest_.layers()[i].layer_id)));
  }
  return absl::OkStatus();
}

}  // namespace engram
