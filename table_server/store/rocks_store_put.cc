// How RocksStore changes what is there.

#include <rocksdb/sst_file_writer.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "table_server/store/rocks_store.h"
#include "table_server/store/store_files.h"

namespace engram {
namespace {

rocksdb::Slice SliceOf(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::Status RocksStore::CheckMayWrite() const {
  if (!options_.read_only) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(description(), " is open to be read only"));
}

absl::Status RocksStore::BeginChange(size_t layer_index,
                                     const PartitionRef& ref) {
  if (index_.BeginChange(layer_index, ref.partition)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(NameOf(ref), " is just being replaced or removed"));
}

absl::Status RocksStore::Put(const PartitionRef& ref,
                             absl::Span<const std::byte> packed) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  ENGRAM_RETURN_IF_ERROR(CheckMayWrite());
  ENGRAM_CHECK(packed.size() == manifest_.RowsIn(layer_index, ref.partition) *
                                    manifest_.row_format().row_bytes());
  // What could not be removed whole takes room for nothing.
  if (!index_.Has(layer_index, ref.partition)) {
    ENGRAM_RETURN_IF_ERROR(Remove(ref));
  }
  uint64_t taken = DiskBytesOf(ref);
  absl::Status status = room_.Take(taken, NameOf(ref));
  if (status.ok()) {
    status = GoOn();
    if (status.ok()) status = WriteAndBringIn(layer_index, ref, packed, taken);
    room_.Give(taken);
  }
  counters_.CountPut(status, packed.size());
  return status;
}

absl::Status RocksStore::WriteAndBringIn(size_t layer_index,
                                         const PartitionRef& ref,
                                         absl::Span<const std::byte> packed,
                                         uint64_t& taken) {
  StoreFiles& files = StoreFiles::Disk();
  const std::string path = absl::StrCat(ingest_dir_, "/", ToInt(ref.layer), "-",
                                        ToInt(ref.partition), ".sst");
  // Not written over: it may be a link to a file of the database.
  ENGRAM_RETURN_IF_ERROR(files.Remove(path));
  const absl::StatusOr<uint64_t> file_bytes =
      WriteFile(path, layer_index, ref, packed);
  absl::Status status = file_bytes.status();
  if (status.ok()) status = BeginChange(layer_index, ref);
  if (status.ok()) {
    status = BringIn(path, *file_bytes, layer_index, ref, taken);
    index_.EndChange(layer_index, ref.partition, status.ok());
  }
  // What is left of it: a link, or what could not be brought in.
  const absl::Status removed = files.Remove(path);
  if (!removed.ok()) spdlog::warn("{}", std::string(removed.message()));
  return status;
}

absl::StatusOr<uint64_t> RocksStore::WriteFile(
    const std::string& path, size_t layer_index, const PartitionRef& ref,
    absl::Span<const std::byte> packed) {
  rocksdb::EnvOptions env_options;
  env_options.use_direct_writes = db_->options().use_direct_reads;
  rocksdb::SstFileWriter writer(env_options, db_->options(),
                                db_->family(layer_index));
  rocksdb::Status status = writer.Open(path);
  for (uint32_t block = 0; status.ok() && !packed.empty(); ++block) {
    const absl::Span<const std::byte> rows = packed.subspan(0, block_bytes());
    status = writer.Put(RocksKey::OfBlock(ref.partition, block).slice(),
                        SliceOf(rows));
    packed.remove_prefix(rows.size());
  }
  rocksdb::ExternalSstFileInfo about;
  if (status.ok()) status = writer.Finish(&about);
  if (!status.ok()) return FromRocks(status, NameOf(ref));
  return about.file_size;
}

absl::Status RocksStore::BringIn(const std::string& path, uint64_t file_bytes,
                                 size_t layer_index, const PartitionRef& ref,
                                 uint64_t& taken) {
  // First, or it would come in over them, where it can hardly be deleted.
  ENGRAM_RETURN_IF_ERROR(DropFiles(layer_index, ref));
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  ingest.write_global_seqno = false;
  ENGRAM_RETURN_IF_ERROR(Wrote(
      db_->db().IngestExternalFile(db_->family(layer_index), {path}, ingest),
      ref));
  taken -= file_bytes;  // the file's, until it is dropped
  file_bytes_[layer_index][ToInt(ref.partition)] = file_bytes;
  absl::Status status = WriteMarker(ref, MarkerOf(layer_index, ref));
  if (!status.ok()) (void)DropFiles(layer_index, ref);
  return status;
}

// By a flush instead of RocksDB's log: it does not go on after an error of
// that.
absl::Status RocksStore::WriteMarker(const PartitionRef& ref,
                                     const std::string& marker) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  const RocksKey key = RocksKey::OfMarker(ref);
  rocksdb::DB& db = db_->db();
  rocksdb::Status status =
      marker.empty()
          ? db.Delete(unlogged, db_->marker_family(), key.slice())
          : db.Put(unlogged, db_->marker_family(), key.slice(), marker);
  if (status.ok()) {
    status = db.Flush(rocksdb::FlushOptions(), db_->marker_family());
  }
  return Wrote(status, ref);
}

// Where there is no file, a marker that was left says nothing.
absl::Status RocksStore::DropFiles(size_t layer_index,
                                   const PartitionRef& ref) {
  if (file_bytes_[layer_index][ToInt(ref.partition)] == 0) {
    return absl::OkStatus();
  }
  ENGRAM_RETURN_IF_ERROR(WriteMarker(ref, ""));
  return DeleteFiles(layer_index, ref);
}

absl::Status RocksStore::DeleteFiles(size_t layer_index,
                                     const PartitionRef& ref) {
  std::atomic<uint64_t>& bytes = file_bytes_[layer_index][ToInt(ref.partition)];
  absl::Status deleted =
      db_->DeleteFiles(layer_index, ref.partition, ref.partition);
  if (!deleted.ok()) stopped_ = true;
  uint64_t left = 0;
  for (const auto& file : db_->FilesOf(layer_index)) {
    if (file.first == ref.partition) left += file.bytes;
  }
  room_.Give(bytes.exchange(left) - left);
  if (deleted.ok() && left > 0) {
    deleted = absl::UnavailableError(
        absl::StrCat(NameOf(ref), ": ", left, " bytes could not be deleted"));
  }
  return deleted;
}

absl::Status RocksStore::Wrote(const rocksdb::Status& status,
                               const PartitionRef& ref) {
  if (!status.ok()) stopped_ = true;
  return FromRocks(status, NameOf(ref));
}

absl::Status RocksStore::GoOn() {
  if (!stopped_.exchange(false)) return absl::OkStatus();
  const rocksdb::Status resumed = db_->db().Resume();
  if (!resumed.ok()) stopped_ = true;
  return FromRocks(resumed, absl::StrCat(db_dir_, " takes no writes"));
}

absl::Status RocksStore::Remove(const PartitionRef& ref) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  ENGRAM_RETURN_IF_ERROR(CheckMayWrite());
  const bool was_there = index_.Has(layer_index, ref.partition);
  // Files may be left of one that could not be removed whole.
  if (!was_there && file_bytes_[layer_index][ToInt(ref.partition)] == 0) {
    return absl::OkStatus();
  }
  ENGRAM_RETURN_IF_ERROR(GoOn());
  ENGRAM_RETURN_IF_ERROR(BeginChange(layer_index, ref));
  absl::Status status = WriteMarker(ref, "");
  const bool is_there = was_there && !status.ok();
  if (status.ok()) status = DeleteFiles(layer_index, ref);
  index_.EndChange(layer_index, ref.partition, is_there);
  return status;
}

}  // namespace engram
