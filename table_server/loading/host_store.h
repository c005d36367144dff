#ifndef ENGRAM_TABLE_SERVER_LOADING_HOST_STORE_H_
#define ENGRAM_TABLE_SERVER_LOADING_HOST_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/loading/available_memory.h"
#include "table_server/loading/partition_source.h"
#include "table_server/loading/partition_store.h"
#include "table_server/loading/verified_sources.h"
#include "table_server/tier/host_tier.h"

namespace engram {

// Partitions in host memory, as VerifiedSources gives them.
class HostStore final : public PartitionStore {
 public:
  struct Options {
    // In the order they are asked. Must outlive the store.
    std::vector<PartitionSource*> sources;
    uint64_t memory_limit_bytes = 0;   // for everything; 0: the machine's
    uint64_t max_bytes_in_flight = 0;  // that calls may hold beside the rows
  };

  // Both must outlive the store.
  HostStore(const Manifest& manifest, HostTier& tier, Options options);

  absl::Status Load(
      const PartitionRef& ref,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;
  void Free(const PartitionRef& ref) override;
  absl::Status CheckFits(absl::Span<const PartitionRef> wanted) override;
  uint64_t BytesToLoad(const PartitionRef& ref) const override;
  uint64_t memory_bytes() const override { return tier_.memory_bytes(); }

  // Found in what was loaded since the start, by the manifest's layers.
  std::vector<RowDefects> defects() const { return sources_.defects(); }

 private:
  // What rows may still take, besides those that are there.
  absl::StatusOr<AvailableMemory> Available() const;

  const Manifest& manifest_;
  HostTier& tier_;
  const Options options_;
  VerifiedSources sources_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_HOST_STORE_H_
