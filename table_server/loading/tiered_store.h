#ifndef ENGRAM_TABLE_SERVER_LOADING_TIERED_STORE_H_
#define ENGRAM_TABLE_SERVER_LOADING_TIERED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/loading/available_memory.h"
#include "table_server/loading/local_copy.h"
#include "table_server/loading/partition_source.h"
#include "table_server/loading/partition_store.h"
#include "table_server/loading/stored_copies.h"
#include "table_server/loading/verified_sources.h"
#include "table_server/store/local_store.h"
#include "table_server/tier/damaged_copies.h"
#include "table_server/tier/host_tier.h"

namespace engram {

// Partitions in a local store and, as far as they may, in host memory too: the
// bookkeeping of a TierStack.
//
// A partition comes from the local store if that has it, else as
// VerifiedSources gives it, and is put into the store then. It goes into host
// memory while that has room, whoever comes first; from then on partitions are
// cold, and stay so until they are freed.
//
// What goes into memory is compared with the manifest, wherever it is from.
// What the store has already and is to be cold is not read at all: it was
// compared before it was put, and the store checks each block that it reads.
//
// A store that cannot take a partition is no obstacle where memory can; it is
// tried again later. What is freed stays in the store until another needs its
// place: a server that comes back to the same members finds its partitions
// there. A damaged copy does not: what is freed as its rows turned out to be
// damaged is read from the sources when it is loaded again.
class TieredStore final : public PartitionStore {
 public:
  struct Options {
    // In the order they are asked. Must outlive the store.
    std::vector<PartitionSource*> sources;
    AvailableMemory available;  // when the server started, for everything
    // Of rows that are kept whole in memory. Nothing: all that `available`
    // leaves.
    std::optional<uint64_t> max_host_bytes;
    uint64_t cache_bytes = 0;
    uint64_t max_bytes_in_flight = 0;  // that calls may hold
    size_t load_threads = 1;       // a partition each on its way to the store
    uint64_t max_store_bytes = 0;  // 0: no limit
    StoredCopies::Options copies;
  };
  struct Stats {
    uint64_t host_bytes = 0;  // taken, whole slots
    uint64_t max_host_bytes = 0;
    uint64_t cold_partitions = 0;
    uint64_t cold_bytes = 0;
    uint64_t unkept_partitions = 0;  // in memory, but not in the store
    uint64_t damaged_copies = 0;     // found since the start
  };

  // All must outlive the store.
  TieredStore(const Manifest& manifest, HostTier& tier, LocalStore& local,
              DamagedCopies& damaged, Options options);

  // UNAVAILABLE also while the partition is just being put into the store or
  // removed from it.
  absl::Status Load(
      const PartitionRef& ref,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;
  void Free(const PartitionRef& ref) override;
  // Tries again to put a copy of what is in memory only.
  void Tend() override;
  // Memory for what may be whole in it, the cache, loads under way and the
  // store's index; room in the store, beside other table versions, for all of
  // `wanted`, which make none for what nobody wants any more.
  absl::Status CheckFits(absl::Span<const PartitionRef> wanted) override;
  uint64_t BytesToLoad(const PartitionRef& ref) const override;
  uint64_t memory_bytes() const override { return tier_.memory_bytes(); }

  // Found in what was read since the start, by the manifest's layers.
  std::vector<RowDefects> defects() const { return sources_.defects(); }
  Stats stats() const;

 private:
  using OnBytes = VerifiedSources::OnBytes;

  absl::Status LoadAnywhere(const PartitionRef& ref, size_t layer_index,
                            OnBytes on_bytes);
  absl::Status LoadIntoHost(const PartitionRef& ref,
                            absl::Span<std::byte> packed, OnBytes on_bytes);
  absl::Status LoadCold(const PartitionRef& ref, OnBytes on_bytes);
  absl::StatusOr<bool> FillFromCopy(const PartitionRef& ref,
                                    absl::Span<std::byte> packed,
                                    OnBytes on_bytes);
  absl::Status Keep(const PartitionRef& ref, absl::Span<const std::byte> packed,
                    StoredCopies::Place place);
  void GiveBack(const PartitionRef& ref);
  absl::Status CheckStoreFits(absl::Span<const PartitionRef> wanted) const;

  bool TakeHost(uint64_t bytes);
  void GiveHost(uint64_t bytes);

  const Manifest& manifest_;
  HostTier& tier_;
  LocalStore& local_;
  LocalCopy copy_{local_};
  const Options options_;
  const uint64_t max_host_bytes_;
  VerifiedSources sources_;
  StoredCopies copies_;

  mutable Mutex mutex_;
  uint64_t host_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cold_partitions_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cold_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_TIERED_STORE_H_
