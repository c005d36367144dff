#include "table_server/store/failed_reads.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace engram {

absl::Status FailedReads::End(absl::Status status, size_t layer_index,
                              PartitionId partition, StoredIndex::Seen seen,
                              absl::FunctionRef<absl::Status()> remove) {
  // The partition is there, a block or the file of it is not.
  if (absl::IsNotFound(status)) {
    status = absl::DataLossError(
        absl::StrCat("what it was put into is gone: ", status.message()));
  }
  counters_.CountReadError(status);
  if (!read_only_) {
    status = media_errors_.Count(status, layer_index, partition, seen);
  }
  if (!absl::IsDataLoss(status)) {
    return absl::UnavailableError(status.message());
  }
  if (read_only_ || !index_.BeginDrop(layer_index, partition, seen)) {
    return status;
  }
  const absl::Status removed = remove();
  ++counters_.dropped_damaged;
  spdlog::error("{}: dropped from the local store{}",
                std::string(status.message()),
                removed.ok() ? ""
                             : absl::StrCat(", but it may be found when the "
                                            "store is opened again: ",
                                            removed.message()));
  index_.EndChange(layer_index, partition, false);
  return status;
}

}  // namespace engram
