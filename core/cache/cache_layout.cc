#include "core/cache/cache_layout.h"

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/cache/ghost_table.h"
#include "core/cache/row_index.h"
#include "core/cache/row_slots.h"

namespace engram {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kHugePageBytes = size_t{2} << 20;
// From there on rounding to whole pages costs little.
constexpr uint64_t kMinBytesInPages = uint64_t{16} << 20;
// Enough that threads that insert seldom meet; not so many that a shard has a
// handful of slots.
constexpr uint64_t kMaxShards = 256;
constexpr uint64_t kMinSlotsPerShard = 512;

size_t RoundUp(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

CacheLayout Of(uint64_t slots_per_shard, uint64_t shard_count, size_t row_bytes,
               bool in_pages) {
  CacheLayout layout;
  layout.shard_count = static_cast<uint32_t>(shard_count);
  layout.slots_per_shard = static_cast<uint32_t>(slots_per_shard);
  layout.buckets_per_shard = static_cast<uint32_t>(
      (slots_per_shard - 1) / CacheLayout::kSlotsPerBucket + 1);
  layout.ghost_buckets_per_shard =
      (layout.buckets_per_shard - 1) / CacheLayout::kBucketsPerGhostBucket + 1;
  layout.index_bytes =
      shard_count * layout.buckets_per_shard * RowIndex::kBucketBytes;
  layout.ghost_bytes =
      shard_count * layout.ghost_buckets_per_shard * GhostTable::kBucketBytes;
  layout.next_bytes = RoundUp(layout.slots() * sizeof(uint32_t), kLineBytes);
  layout.slot_bytes = RowSlots::SlotBytes(row_bytes);
  layout.in_pages = in_pages;
  layout.slab_bytes =
      RoundUp(layout.index_bytes + layout.ghost_bytes + layout.next_bytes +
                  layout.slots() * layout.slot_bytes,
              in_pages ? kHugePageBytes : kLineBytes);
  return layout;
}

}  // namespace

absl::StatusOr<CacheLayout> CacheLayout::Within(uint64_t max_bytes,
                                                size_t row_bytes,
                                                size_t shard_bytes) {
  const CacheLayout one = Of(1, 1, row_bytes, /*in_pages=*/false);
  if (row_bytes == 0 || max_bytes < one.slab_bytes + shard_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a row cache of ", max_bytes, " bytes for rows of ", row_bytes,
        " bytes: one row needs ", one.slab_bytes, " with its index, and ",
        shard_bytes, " for what keeps it"));
  }
  const bool in_pages = max_bytes >= kMinBytesInPages;
  const uint64_t most = (max_bytes - shard_bytes) / one.slot_bytes;
  const uint64_t shard_count = std::bit_floor(
      std::clamp<uint64_t>(most / kMinSlotsPerShard, 1, kMaxShards));
  uint64_t low = 1;  // fits: one slot does, and shards have many
  uint64_t high = most / shard_count + 1;
  if (high * shard_count > ~uint32_t{0}) {
    return absl::InvalidArgumentError(
        absl::StrCat("a row cache of ", max_bytes, " bytes has ", most,
                     " rows of ", row_bytes, " bytes, the limit is 2^32"));
  }
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const size_t bytes =
        Of(middle, shard_count, row_bytes, in_pages).slab_bytes +
        shard_count * shard_bytes;
    (bytes <= max_bytes ? low : high) = middle;
  }
  return Of(low, shard_count, row_bytes, in_pages);
}

}  // namespace engram
