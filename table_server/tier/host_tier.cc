#include "table_server/tier/host_tier.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
// Rows between the prefetch of a row and its copy: enough to hide a miss to
// memory behind the copies of the rows before.
constexpr size_t kPrefetchRows = 8;

}  // namespace

HostTier::HostTier(size_t row_bytes, uint64_t partition_rows)
    : row_bytes_(row_bytes),
      partition_shift_(std::countr_zero(partition_rows)) {}

uint64_t HostTier::BytesNeeded(const Manifest& manifest, size_t layer_index,
                               absl::Span<const PartitionRef> owned) {
  const LayerId layer_id = manifest.layers()[layer_index].layer_id;
  const size_t row_bytes = manifest.row_format().row_bytes();
  uint64_t bytes = 0;
  for (const PartitionRef& ref : owned) {
    if (ref.layer != layer_id) continue;
    bytes += SlotMemory::SlotBytes(manifest.RowsIn(layer_index, ref.partition) *
                                   row_bytes);
  }
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

absl::StatusOr<std::unique_ptr<HostTier>> HostTier::Create(
    const Manifest& manifest, absl::Span<const int> numa_nodes) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  std::unique_ptr<HostTier> tier(
      new HostTier(row_bytes, manifest.partition_rows()));
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    Layer& layer = tier->layers_.emplace_back();
    const uint32_t count = manifest.partition_count(i);
    layer.partitions.resize(count);
    uint64_t most_rows = 0;
    for (uint32_t p = 0; p < count; ++p) {
      const uint64_t rows = manifest.RowsIn(i, PartitionId{p});
      layer.partitions[p].size_bytes = rows * row_bytes;
      most_rows = std::max(most_rows, rows);
    }
    ENGRAM_ASSIGN_OR_RETURN(
        layer.slots,
        SlotMemory::Create(most_rows * row_bytes, count, numa_nodes));
  }
  return tier;
}

HostTier::Partition& HostTier::At(size_t layer_index, PartitionId partition) {
  ENGRAM_CHECK(layer_index < layers_.size() &&
               ToInt(partition) < layers_[layer_index].partitions.size());
  return layers_[layer_index].partitions[ToInt(partition)];
}

absl::StatusOr<absl::Span<std::byte>> HostTier::Allocate(
    size_t layer_index, PartitionId partition) {
  Partition& entry = At(layer_index, partition);
  ENGRAM_CHECK(entry.data == nullptr);
  ENGRAM_ASSIGN_OR_RETURN(entry.data, layers_[layer_index].slots->Take());
  allocated_bytes_.fetch_add(entry.size_bytes);
  return absl::MakeSpan(entry.data, entry.size_bytes);
}

bool HostTier::IsAllocated(size_t layer_index, PartitionId partition) const {
  const std::vector<Partition>& partitions = layers_[layer_index].partitions;
  return partitions[ToInt(partition)].data != nullptr;
}

absl::Span<std::byte> HostTier::MutablePartition(size_t layer_index,
                                                 PartitionId partition) {
  const Partition& entry = At(layer_index, partition);
  ENGRAM_CHECK(entry.data != nullptr);
  return {entry.data, entry.size_bytes};
}

void HostTier::Free(size_t layer_index, PartitionId partition) {
  Partition& entry = At(layer_index, partition);
  ENGRAM_CHECK(entry.data != nullptr);
  layers_[layer_index].slots->Give(std::exchange(entry.data, nullptr));
  allocated_bytes_.fetch_sub(entry.size_bytes);
}

template <bool kMayMiss>
void HostTier::Copy(size_t layer_index, absl::Span<const RowId> row_ids,
                    absl::Span<std::byte> out,
                    std::vector<uint32_t>& misses) const {
  // Local: no write of a row can change them.
  const size_t row_bytes = row_bytes_;
  const int shift = partition_shift_;
  ENGRAM_CHECK(out.size() == row_ids.size() * row_bytes);
  const Partition* partitions = layers_[layer_index].partitions.data();
  const uint64_t row_mask = (uint64_t{1} << shift) - 1;
  const auto address_of = [&](RowId row) -> const std::byte* {
    const uint64_t id = row;
    const std::byte* const data = partitions[id >> shift].data;
    if (kMayMiss && data == nullptr) return nullptr;
    return data + (id & row_mask) * row_bytes;
  };
  const auto prefetch = [&](RowId id) {
    const std::byte* const row = address_of(id);
    if (!kMayMiss || row != nullptr) PrefetchBytes(row, row_bytes);
  };
  const size_t ahead = std::min(kPrefetchRows, row_ids.size());
  for (size_t i = 0; i < ahead; ++i) prefetch(row_ids[i]);
  std::byte* to = out.data();
  for (size_t i = 0; i < row_ids.size(); ++i, to += row_bytes) {
    if (i + ahead < row_ids.size()) prefetch(row_ids[i + ahead]);
    const std::byte* const row = address_of(row_ids[i]);
    if (kMayMiss && row == nullptr) {
      misses.push_back(static_cast<uint32_t>(i));
    } else {
      std::memcpy(to, row, row_bytes);
    }
  }
}

absl::Status HostTier::CopyRows(size_t layer_index,
                                absl::Span<const RowId> row_ids,
                                absl::Span<std::byte> out,
                                std::vector<uint32_t>& misses) const {
  Copy</*kMayMiss=*/false>(layer_index, row_ids, out, misses);
  return absl::OkStatus();
}

void HostTier::CopyAllocated(size_t layer_index,
                             absl::Span<const RowId> row_ids,
                             absl::Span<std::byte> out,
                             std::vector<uint32_t>& misses) const {
  Copy</*kMayMiss=*/true>(layer_index, row_ids, out, misses);
}

size_t HostTier::huge_page_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.slots->HugeBytes();
  return bytes;
}

}  // namespace engram
