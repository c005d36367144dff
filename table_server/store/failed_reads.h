#ifndef ENGRAM_TABLE_SERVER_STORE_FAILED_READS_H_
#define ENGRAM_TABLE_SERVER_STORE_FAILED_READS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/ids.h"
#include "table_server/store/media_errors.h"
#include "table_server/store/partition_index.h"
#include "table_server/store/store_stats.h"

namespace engram {

// What becomes of reads of a store that failed, and of the partition they are
// of.
//
// Thread safety: all methods may be called concurrently.
class FailedReads {
 public:
  // All must outlive it. `read_only`: nothing is dropped.
  FailedReads(StoredIndex& index, StoreCounters& counters, const Clock& clock,
              bool read_only)
      : index_(index),
        counters_(counters),
        media_errors_(clock),
        read_only_(read_only) {}

  // Counts a read that failed with `status`. DATA_LOSS: the partition's copy is
  // damaged, gone or unreadable for good, and if it still is as it was `seen`
  // before the read it is dropped: `remove`, by one of all who find that.
  // UNAVAILABLE: all else. REQUIRES: the manifest has it.
  absl::Status End(absl::Status status, size_t layer_index,
                   PartitionId partition, StoredIndex::Seen seen,
                   absl::FunctionRef<absl::Status()> remove);

 private:
  StoredIndex& index_;
  StoreCounters& counters_;
  MediaErrors media_errors_;
  const bool read_only_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FAILED_READS_H_
