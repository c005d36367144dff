#include "core/cache/row_cache.h"

#include <new>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/base/thread_number.h"

namespace engram {
namespace {

// Rows between asking for a bucket's line and looking at it, and from there to
// the copy of its row.
constexpr size_t kBucketsAhead = 8;
constexpr size_t kSlotsAhead = 8;
constexpr size_t kWindow = 32;  // a power of two above both together
static_assert(kBucketsAhead + kSlotsAhead < kWindow);

constexpr size_t kLineBytes = 64;
// Of what the heap adds to a shard, a name.
constexpr size_t kHeapBytes = 64;
constexpr uint64_t kNameShare = 128;
constexpr uint64_t kMinNameBytes = 1024;

uint64_t MaxNameBytes(uint64_t max_bytes) {
  return max_bytes / kNameShare + kMinNameBytes;
}

uint64_t NewSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

void Add(std::atomic<uint64_t>& count, uint64_t more) {
  if (more > 0) count.fetch_add(more, std::memory_order_relaxed);
}

size_t PlaceOf(absl::Span<const uint32_t> slots, size_t i) {
  return slots.empty() ? i : slots[i];
}

struct Probe {
  CacheKey key{0};
  uint64_t hash = 0;
  uint64_t bucket = 0;
  uint32_t slot = 0;
};

// Asks for the line of the row's bucket.
Probe StartProbe(const CacheTables& tables, TableKey table, RowId row) {
  Probe probe{.key = CacheKey(table, row)};
  probe.hash = probe.key.Hash(tables.hash_seed);
  probe.bucket = tables.index.BucketOf(probe.hash);
  tables.index.PrefetchBucket(probe.bucket);
  return probe;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowCache>> RowCache::Create(Options options) {
  const uint64_t name_bytes = MaxNameBytes(options.max_bytes);
  const uint64_t fixed = sizeof(RowCache) + name_bytes;
  if (options.max_bytes <= fixed) {
    return absl::InvalidArgumentError(
        absl::StrCat("a row cache of ", options.max_bytes, " bytes, of which ",
                     fixed, " go to what keeps it and to names of tables"));
  }
  ENGRAM_ASSIGN_OR_RETURN(
      const CacheLayout layout,
      CacheLayout::Within(options.max_bytes - fixed, options.row_bytes,
                          sizeof(CacheShard) + kHeapBytes));
  std::unique_ptr<RowCache> cache(new RowCache(options, layout, name_bytes));
  ENGRAM_RETURN_IF_ERROR(cache->Allocate());
  return cache;
}

RowCache::RowCache(Options options, const CacheLayout& layout,
                   uint64_t max_name_bytes)
    : options_(options), layout_(layout), max_name_bytes_(max_name_bytes) {}

absl::Status RowCache::Allocate() {
  uint64_t* slab = nullptr;
  if (layout_.in_pages) {
    ENGRAM_ASSIGN_OR_RETURN(pages_, PageBuffer::Allocate(layout_.slab_bytes));
    slab = reinterpret_cast<uint64_t*>(pages_.bytes().data());
  } else {
    lines_.reset(new (std::nothrow) Line[layout_.slab_bytes / kLineBytes]());
    if (lines_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory for ", layout_.slab_bytes, " bytes of a row cache"));
    }
    slab = lines_[0].words.data();
  }
  tables_.emplace(TablesIn(slab));
  for (uint32_t shard = 0; shard < layout_.shard_count; ++shard) {
    shards_.push_back(std::make_unique<CacheShard>(layout_, shard, *tables_));
  }
  return absl::OkStatus();
}

CacheTables RowCache::TablesIn(uint64_t* slab) const {
  auto* const bytes = reinterpret_cast<std::byte*>(slab);
  std::byte* const ghosts = bytes + layout_.index_bytes;
  std::byte* const next = ghosts + layout_.ghost_bytes;
  std::byte* const slots = next + layout_.next_bytes;
  return {
      .slots = RowSlots(reinterpret_cast<uint64_t*>(slots), options_.row_bytes),
      .index = RowIndex(
          slab, uint64_t{layout_.shard_count} * layout_.buckets_per_shard),
      .ghosts = GhostTable(reinterpret_cast<uint32_t*>(ghosts)),
      .next = reinterpret_cast<uint32_t*>(next),
      .hash_seed = NewSeed()};
}

absl::StatusOr<TableKey> RowCache::KeyOf(std::string_view version,
                                         LayerId layer) {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].second == layer && names_[i].first == version) {
      return TableKey{static_cast<uint32_t>(i + 1)};
    }
  }
  const uint64_t bytes = version.size() + 2 * (sizeof(names_[0]) + kHeapBytes);
  if (bytes > max_name_bytes_ - name_bytes_ ||
      names_.size() + 2 >= uint32_t{1} << CacheKey::kTableBits) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the names of ", names_.size(), " tables take ",
                     name_bytes_, " bytes of a row cache, one more ", bytes,
                     ", the limit is ", max_name_bytes_));
  }
  name_bytes_ += bytes;
  names_.emplace_back(version, layer);
  return TableKey{static_cast<uint32_t>(names_.size())};
}

void RowCache::Lookup(TableKey table, absl::Span<const RowId> row_ids,
                      absl::Span<const uint32_t> slots,
                      absl::Span<std::byte> out,
                      std::vector<uint32_t>& misses) {
  ENGRAM_CHECK(slots.empty() || slots.size() == row_ids.size());
  const size_t row_bytes = options_.row_bytes;
  const RowIndex& index = tables_->index;
  const RowSlots& rows = tables_->slots;
  const size_t missed_before = misses.size();
  std::array<Probe, kWindow> window;
  const size_t count = row_ids.size();
  for (size_t step = 0; step < count + kBucketsAhead + kSlotsAhead; ++step) {
    if (step < count) {
      window[step % kWindow] = StartProbe(*tables_, table, row_ids[step]);
    }
    // What is before the first row wraps far beyond the last.
    if (const size_t i = step - kBucketsAhead; i < count) {
      Probe& probe = window[i % kWindow];
      probe.slot = index.Find(probe.bucket, probe.hash);
      if (probe.slot != RowIndex::kNoSlot) rows.PrefetchSlot(probe.slot);
    }
    if (const size_t i = step - kBucketsAhead - kSlotsAhead; i < count) {
      const Probe& probe = window[i % kWindow];
      std::byte* const to = out.data() + PlaceOf(slots, i) * row_bytes;
      if (probe.slot == RowIndex::kNoSlot ||
          !rows.Read(probe.slot, probe.key, to)) {
        misses.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  const size_t missed = misses.size() - missed_before;
  Counts& counts = CountsHere();
  Add(counts.hits, count - missed);
  Add(counts.misses, missed);
}

RowCache::Inserted RowCache::Insert(TableKey table,
                                    absl::Span<const RowId> row_ids,
                                    absl::Span<const uint32_t> slots,
                                    absl::Span<const std::byte> rows) {
  ENGRAM_CHECK(slots.empty() || slots.size() == row_ids.size());
  std::array<Probe, kWindow> window;
  const size_t count = row_ids.size();
  Inserted inserted;
  for (size_t step = 0; step < count + kBucketsAhead; ++step) {
    if (step < count) {
      window[step % kWindow] = StartProbe(*tables_, table, row_ids[step]);
    }
    if (const size_t i = step - kBucketsAhead; i < count) {
      const Probe& probe = window[i % kWindow];
      CountInto(inserted, ShardOf(probe.bucket)
                              .Insert(probe.key, probe.hash, probe.bucket,
                                      rows.data() + PlaceOf(slots, i) *
                                                        options_.row_bytes));
    }
  }
  Counts& counts = CountsHere();
  Add(counts.inserts, inserted.inserts);
  Add(counts.evictions, inserted.evictions);
  Add(counts.dropped, inserted.dropped);
  return inserted;
}

void RowCache::CountInto(Inserted& inserted, CacheShard::Outcome outcome) {
  using Outcome = CacheShard::Outcome;
  const bool replaced = outcome == Outcome::kReplaced;
  const bool dropped =
      outcome == Outcome::kBusy || outcome == Outcome::kRefused;
  inserted.inserts += replaced || outcome == Outcome::kInserted ? 1 : 0;
  inserted.evictions += replaced ? 1 : 0;
  inserted.dropped += dropped ? 1 : 0;
}

RowCache::Counts& RowCache::CountsHere() {
  return counts_[ThreadNumber() % kCounts];
}

RowCache::Stats RowCache::stats() const {
  Stats stats;
  for (const Counts& counts : counts_) {
    stats.hits += counts.hits.load(std::memory_order_relaxed);
    stats.misses += counts.misses.load(std::memory_order_relaxed);
    stats.inserts += counts.inserts.load(std::memory_order_relaxed);
    stats.evictions += counts.evictions.load(std::memory_order_relaxed);
    stats.dropped += counts.dropped.load(std::memory_order_relaxed);
  }
  for (const auto& shard : shards_) stats.rows += shard->used_slots();
  stats.slots = layout_.slots();
  stats.bytes = sizeof(RowCache) + layout_.slab_bytes +
                shards_.size() * (sizeof(CacheShard) + kHeapBytes);
  MutexLock lock(&mutex_);
  stats.bytes += name_bytes_;
  return stats;
}

}  // namespace engram
