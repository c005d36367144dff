#ifndef ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/manifest.h"
#include "table_server/tier/row_tier.h"
#include "table_server/tier/slot_memory.h"

namespace engram {

// Rows in ordinary host memory, in huge pages. Partitions come and go while
// others are read.
//
// Thread safety: all methods may be called concurrently, Allocate,
// MutablePartition and Free of one partition by one thread at a time. A reader
// sees a partition that it heard of by PartitionSet::Holds.
class HostTier final : public RowTier {
 public:
  // Takes the addresses of all partitions, and no memory. Memory comes from all
  // of `numa_nodes` by turns if there are several: threads of every node read
  // any row, and the memory of a single node would hold all of them up.
  // RESOURCE_EXHAUSTED: the kernel refused the addresses.
  static absl::StatusOr<std::unique_ptr<HostTier>> Create(
      const Manifest& manifest, absl::Span<const int> numa_nodes = {});

  // Bytes that `owned` takes in one layer, whole huge pages.
  static uint64_t BytesNeeded(const Manifest& manifest, size_t layer_index,
                              absl::Span<const PartitionRef> owned);

  // Where a partition is to be written, all of it, before it is published: the
  // contents are unspecified, and the kernel gives memory as it is written to.
  // RESOURCE_EXHAUSTED: the kernel refuses so much; nothing has changed.
  // REQUIRES: in the manifest, not allocated.
  absl::StatusOr<absl::Span<std::byte>> Allocate(size_t layer_index,
                                                 PartitionId partition);
  // The same again. REQUIRES: allocated.
  absl::Span<std::byte> MutablePartition(size_t layer_index,
                                         PartitionId partition);
  // Gives the memory back to the machine. REQUIRES: allocated; nobody reads it
  // any more: it was never published, or it was dropped from the PartitionSet
  // and the leases from before have ended.
  void Free(size_t layer_index, PartitionId partition);

  // Misses nothing: every row is of a partition that is allocated.
  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  // The same where partitions may be held elsewhere: their rows are misses.
  void CopyAllocated(size_t layer_index, absl::Span<const RowId> row_ids,
                     absl::Span<std::byte> out,
                     std::vector<uint32_t>& misses) const;
  // Whether a partition is. Readers may ask of those that they may read.
  bool IsAllocated(size_t layer_index, PartitionId partition) const;
  size_t row_bytes() const override { return row_bytes_; }
  // Of the partitions that are allocated. The kernel may give up to a huge page
  // more at each end of a row of neighbours.
  size_t memory_bytes() const override { return allocated_bytes_.load(); }
  size_t huge_page_bytes() const override;

 private:
  // Written by whoever allocates or frees the partition: no reader looks at
  // those that are not held.
  struct Partition {
    std::byte* data = nullptr;  // null: not allocated
    size_t size_bytes = 0;      // the last one of a layer has fewer rows
  };
  struct Layer {
    std::unique_ptr<SlotMemory> slots;
    std::vector<Partition> partitions;
  };

  HostTier(size_t row_bytes, uint64_t partition_rows);

  Partition& At(size_t layer_index, PartitionId partition);
  template <bool kMayMiss>
  void Copy(size_t layer_index, absl::Span<const RowId> row_ids,
            absl::Span<std::byte> out, std::vector<uint32_t>& misses) const;

  const size_t row_bytes_;
  const int partition_shift_;  // row id >> shift is the partition
  std::vector<Layer> layers_;  // its vectors never change their sizes
  std::atomic<size_t> allocated_bytes_{0};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_
