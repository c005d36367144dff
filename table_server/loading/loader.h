#ifndef ENGRAM_TABLE_SERVER_LOADING_LOADER_H_
#define ENGRAM_TABLE_SERVER_LOADING_LOADER_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/tier/host_tier.h"

namespace engram {

// What was loaded, layer by layer in the manifest's order.
struct LoadReport {
  uint64_t bytes = 0;
  std::vector<RowDefects> defects;
};

// Reads partitions from a checkpoint into a tier, verifies each against the
// manifest and publishes it. A partition whose bytes are not those of the
// manifest is never published.
class Loader {
 public:
  struct Options {
    size_t thread_count = 0;  // 0: one for each core
    // Called now and then on the thread that called Load.
    absl::AnyInvocable<void(uint64_t done_bytes, uint64_t total_bytes)>
        progress;
    // Load ends with CANCELLED soon after this becomes true. May be null.
    const std::atomic<bool>* stop = nullptr;
  };

  // All must outlive the loader.
  Loader(const Checkpoint& checkpoint, const Manifest& manifest, HostTier& tier,
         PartitionSet& partitions, Options options);

  // Loads `owned`, in order, several at a time; returns at the first failure.
  // FAILED_PRECONDITION names layer, partition, file and both digests when one
  // does not match; DATA_LOSS when a file was cut while it was read.
  absl::StatusOr<LoadReport> Load(absl::Span<const PartitionRef> owned);

 private:
  absl::Status LoadOne(const PartitionRef& ref, RowDefects& defects);
  absl::Status Verify(const PartitionRef& ref, size_t layer_index,
                      absl::Span<const std::byte> packed) const;

  const Checkpoint& checkpoint_;
  const Manifest& manifest_;
  HostTier& tier_;
  PartitionSet& partitions_;
  Options options_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_LOADER_H_
