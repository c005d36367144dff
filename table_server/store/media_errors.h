#ifndef ENGRAM_TABLE_SERVER_STORE_MEDIA_ERRORS_H_
#define ENGRAM_TABLE_SERVER_STORE_MEDIA_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "table_server/store/partition_index.h"
#include "table_server/store/store_files.h"

namespace engram {

// How often the medium failed to read a partition's copy. A sector that is bad
// stays so until it is written to, which only a new copy does; a controller
// that starts again fails many reads at once, and none later.
//
// Thread safety: all methods may be called concurrently.
class MediaErrors {
 public:
  // A copy is lost with so many, of which each is so much later than the one
  // before: fewer may have passed by.
  static constexpr uint32_t kLost = 3;
  static constexpr absl::Duration kSpacing = absl::Seconds(10);

  // `clock` must outlive it.
  explicit MediaErrors(const Clock& clock) : clock_(clock) {}

  // Of a read that failed with `status`: DATA_LOSS when the copy that was
  // `seen` before is lost with it, else `status`. Reads that succeed do not
  // count: they may be of other sectors.
  absl::Status Count(const absl::Status& status, size_t layer_index,
                     PartitionId partition, StoredIndex::Seen seen) {
    if (!IsMediaError(status)) return status;
    const absl::Time now = clock_.Now();
    MutexLock lock(&mutex_);
    Failures& failures = failures_[{layer_index, partition}];
    if (failures.count == 0 || failures.seen != seen) {
      failures = {.seen = seen, .count = 1, .last = now};
    } else if (now - failures.last >= kSpacing) {
      ++failures.count;
      failures.last = now;
    }
    if (failures.count < kLost) return status;
    return absl::DataLossError(absl::StrCat(
        status.message(), "; it has failed so ", failures.count,
        " times, at least ", absl::FormatDuration(kSpacing), " apart"));
  }

 private:
  struct Failures {
    StoredIndex::Seen seen{};  // the copy that they are of
    uint32_t count = 0;
    absl::Time last;
  };

  const Clock& clock_;
  Mutex mutex_;
  // Of partitions with failures, which are few.
  std::map<std::pair<size_t, PartitionId>, Failures> failures_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_MEDIA_ERRORS_H_
