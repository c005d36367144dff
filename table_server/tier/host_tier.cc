#include "table_server/tier/host_tier.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/numa.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr size_t kCacheLineBytes = 64;
// Rows between the prefetch of a row and its copy: enough to hide a miss to
// memory behind the copies of the rows before.
constexpr size_t kPrefetchRows = 8;

void PrefetchRow(const std::byte* row, size_t row_bytes) {
  for (size_t at = 0; at < row_bytes; at += kCacheLineBytes) {
    __builtin_prefetch(row + at);
  }
}

uint64_t SlabBytes(const Manifest& manifest, size_t layer_index,
                   absl::Span<const PartitionRef> owned) {
  const LayerId layer_id = manifest.layers()[layer_index].layer_id;
  uint64_t rows = 0;
  for (const PartitionRef& ref : owned) {
    if (ref.layer != layer_id) continue;
    rows += manifest.RowsIn(layer_index, ref.partition);
  }
  return rows * manifest.row_format().row_bytes();
}

// Memory of one node is slower, not wrong.
void Interleave(absl::Span<std::byte> slab, absl::Span<const int> numa_nodes) {
  if (numa_nodes.size() < 2) return;
  const absl::Status status = InterleaveOverNodes(slab, numa_nodes);
  if (status.ok()) return;
  spdlog::warn("rows may lie on one NUMA node: {}",
               std::string(status.message()));
}

}  // namespace

HostTier::HostTier(size_t row_bytes, uint64_t partition_rows)
    : row_bytes_(row_bytes),
      partition_shift_(std::countr_zero(partition_rows)) {}

uint64_t HostTier::BytesNeeded(const Manifest& manifest, size_t layer_index,
                               absl::Span<const PartitionRef> owned) {
  const uint64_t bytes = SlabBytes(manifest, layer_index, owned);
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

absl::StatusOr<std::unique_ptr<HostTier>> HostTier::Create(
    const Manifest& manifest, absl::Span<const PartitionRef> owned,
    absl::Span<const int> numa_nodes) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  std::unique_ptr<HostTier> tier(
      new HostTier(row_bytes, manifest.partition_rows()));
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    Layer& layer = tier->layers_.emplace_back();
    layer.partitions.resize(manifest.partition_count(i));
    ENGRAM_ASSIGN_OR_RETURN(
        layer.slab, PageBuffer::Allocate(SlabBytes(manifest, i, owned)));
    Interleave(layer.slab.bytes(), numa_nodes);
    std::byte* next = layer.slab.bytes().data();
    for (const PartitionRef& ref : owned) {
      if (ref.layer != manifest.layers()[i].layer_id) continue;
      Slot& slot = layer.partitions[ToInt(ref.partition)];
      ENGRAM_CHECK(slot.data == nullptr);
      slot = {next, manifest.RowsIn(i, ref.partition) * row_bytes};
      next += slot.size_bytes;
    }
  }
  return tier;
}

absl::Span<std::byte> HostTier::MutablePartition(size_t layer_index,
                                                 PartitionId partition) {
  const Slot& slot = layers_[layer_index].partitions[ToInt(partition)];
  ENGRAM_CHECK(slot.data != nullptr);
  return {slot.data, slot.size_bytes};
}

absl::Status HostTier::CopyRows(size_t layer_index,
                                absl::Span<const RowId> row_ids,
                                absl::Span<std::byte> out) const {
  ENGRAM_CHECK(out.size() == row_ids.size() * row_bytes_);
  const Slot* slots = layers_[layer_index].partitions.data();
  const uint64_t row_mask = (uint64_t{1} << partition_shift_) - 1;
  const auto address_of = [&](RowId row) {
    const uint64_t id = row;
    return slots[id >> partition_shift_].data + (id & row_mask) * row_bytes_;
  };
  const size_t ahead = std::min(kPrefetchRows, row_ids.size());
  for (size_t i = 0; i < ahead; ++i) {
    PrefetchRow(address_of(row_ids[i]), row_bytes_);
  }
  std::byte* to = out.data();
  for (size_t i = 0; i < row_ids.size(); ++i, to += row_bytes_) {
    if (i + ahead < row_ids.size()) {
      PrefetchRow(address_of(row_ids[i + ahead]), row_bytes_);
    }
    std::memcpy(to, address_of(row_ids[i]), row_bytes_);
  }
  return absl::OkStatus();
}

size_t HostTier::memory_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.slab.bytes().size();
  return bytes;
}

size_t HostTier::huge_page_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.slab.HugeBytes();
  return bytes;
}

}  // namespace engram
