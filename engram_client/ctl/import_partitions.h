#ifndef ENGRAM_ENGRAM_CLIENT_CTL_IMPORT_PARTITIONS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_IMPORT_PARTITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "engram_client/ctl/partition_run.h"
#include "table_server/loading/partition_source.h"
#include "table_server/store/local_store.h"

namespace engram::ctl {

// Those of `wanted` that the store does not have.
std::vector<PartitionRef> MissingIn(const LocalStore& store,
                                    absl::Span<const PartitionRef> wanted);

// RESOURCE_EXHAUSTED, with the sums: with `missing` the store would have more
// than `max_store_bytes` (0: no limit), or the disk less than nothing free.
absl::Status CheckRoom(const LocalStore& store,
                       absl::Span<const PartitionRef> missing,
                       uint64_t max_store_bytes, uint64_t free_bytes);

struct ImportResult {
  PartitionRunResult looked_at;
  uint64_t imported = 0;  // partitions
  uint64_t imported_bytes = 0;
  uint64_t replaced = 0;  // of those: they were there, and damaged
};

// Puts each of `refs` into the store as `source` gives it, once it has its
// digest, unless the store has one with its digest; each is there, or it is
// not, whenever this comes to an end. Errors of VerifiedSources and of
// LocalStore::Put, naming the partition; what was put before stays.
absl::StatusOr<ImportResult> ImportPartitions(
    const Manifest& manifest, PartitionSource& source, LocalStore& store,
    absl::Span<const PartitionRef> refs, const PartitionRunOptions& options);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_IMPORT_PARTITIONS_H_
