// How FlatStore changes what is there.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "table_server/store/flat_file.h"
#include "table_server/store/flat_store.h"

namespace engram {

absl::Status FlatStore::CheckMayWrite() const {
  if (!options_.read_only) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(description(), " is open to be read only"));
}

absl::Status FlatStore::Put(const PartitionRef& ref,
                            absl::Span<const std::byte> packed) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  ENGRAM_RETURN_IF_ERROR(CheckMayWrite());
  const FlatHeader header = HeaderOf(layer_index, ref);
  ENGRAM_CHECK(packed.size() == header.rows * header.row_bytes);
  // What could not be removed before makes room; if it still cannot, it is
  // replaced.
  if (!index_.Has(layer_index, ref.partition)) (void)Remove(ref);
  absl::Status status = room_.Take(header.file_bytes(), PathOf(ref));
  if (status.ok()) status = WriteAndPlace(header, packed, layer_index);
  counters_.CountPut(status, packed.size());
  return status;
}

absl::Status FlatStore::WriteAndPlace(const FlatHeader& header,
                                      absl::Span<const std::byte> packed,
                                      size_t layer_index) {
  const std::string temp_path = absl::StrCat(PathOf(header.ref), ".tmp");
  absl::Status status = WriteFlatFile(files_, temp_path, header, packed);
  if (status.ok()) status = BeginChange(layer_index, header.ref);
  if (status.ok()) return Place(temp_path, header, layer_index);
  room_.Give(header.file_bytes());
  // What cannot be removed is when the store is opened again.
  (void)files_.Remove(temp_path);
  return status;
}

absl::Status FlatStore::Place(const std::string& temp_path,
                              const FlatHeader& header, size_t layer_index) {
  const PartitionRef& ref = header.ref;
  absl::Status status = files_.Rename(temp_path, PathOf(ref));
  if (!status.ok()) {
    index_.EndChange(layer_index, ref.partition,
                     index_.Has(layer_index, ref.partition));
    room_.Give(header.file_bytes());
    (void)files_.Remove(temp_path);
    return status;
  }
  status = files_.SyncDir(LayerDir(ref.layer));
  open_files_.Drop(KeyOf(ref));
  room_.Give(FileBytes(layer_index, ref).exchange(header.file_bytes()));
  // In doubt it is not there, neither this one nor the one before.
  if (!status.ok()) (void)RemoveFile(layer_index, ref);
  index_.EndChange(layer_index, ref.partition, status.ok());
  return status;
}

absl::Status FlatStore::BeginChange(size_t layer_index,
                                    const PartitionRef& ref) {
  if (index_.BeginChange(layer_index, ref.partition)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(PathOf(ref), " is just being replaced or removed"));
}

absl::Status FlatStore::Remove(const PartitionRef& ref) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  ENGRAM_RETURN_IF_ERROR(CheckMayWrite());
  if (FileBytes(layer_index, ref) == 0) return absl::OkStatus();
  ENGRAM_RETURN_IF_ERROR(BeginChange(layer_index, ref));
  const absl::Status removed = RemoveFile(layer_index, ref);
  index_.EndChange(layer_index, ref.partition,
                   !removed.ok() && index_.Has(layer_index, ref.partition));
  if (!removed.ok()) return removed;
  return files_.SyncDir(LayerDir(ref.layer));
}

absl::Status FlatStore::RemoveFile(size_t layer_index,
                                   const PartitionRef& ref) {
  ENGRAM_RETURN_IF_ERROR(files_.Remove(PathOf(ref)));
  // Reads that have it open go on.
  open_files_.Drop(KeyOf(ref));
  room_.Give(FileBytes(layer_index, ref).exchange(0));
  return absl::OkStatus();
}

absl::Status FlatStore::RemoveForGood(size_t layer_index,
                                      const PartitionRef& ref) {
  ENGRAM_RETURN_IF_ERROR(RemoveFile(layer_index, ref));
  return files_.SyncDir(LayerDir(ref.layer));
}

}  // namespace engram
