#ifndef ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/page_buffer.h"
#include "core/model/manifest.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Rows in ordinary host memory. A layer's owned partitions stand one after
// another in one slab of huge pages: a partition has 17 MB in V4.1, but some
// kilobytes in small tables, where pages of their own would waste most of
// them.
class HostTier final : public RowTier {
 public:
  // Maps memory for `owned`; the kernel gives pages as they are written, from
  // all of `numa_nodes` by turns if there are several: threads of every node
  // read any row, and the memory of a single node would hold all of them up.
  // RESOURCE_EXHAUSTED: the kernel refused memory. REQUIRES: all in the
  // manifest, none twice.
  static absl::StatusOr<std::unique_ptr<HostTier>> Create(
      const Manifest& manifest, absl::Span<const PartitionRef> owned,
      absl::Span<const int> numa_nodes = {});

  // Bytes that `owned` takes in one layer, whole huge pages.
  static uint64_t BytesNeeded(const Manifest& manifest, size_t layer_index,
                              absl::Span<const PartitionRef> owned);

  // Where the loader writes a partition, before it is published.
  // REQUIRES: owned. Thread safety: different partitions concurrently.
  absl::Span<std::byte> MutablePartition(size_t layer_index,
                                         PartitionId partition);

  absl::string_view kind() const override { return "host"; }
  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out) const override;
  size_t row_bytes() const override { return row_bytes_; }
  size_t memory_bytes() const override;
  size_t huge_page_bytes() const override;

 private:
  struct Slot {
    std::byte* data = nullptr;  // null: not owned
    size_t size_bytes = 0;
  };
  struct Layer {
    PageBuffer slab;
    std::vector<Slot> partitions;
  };

  HostTier(size_t row_bytes, uint64_t partition_rows);

  const size_t row_bytes_;
  const int partition_shift_;  // row id >> shift is the partition
  std::vector<Layer> layers_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_HOST_TIER_H_
