#include "engram_client/rpc/gather_cache.h"

#include <cstring>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// The row of a layer's `slot` to the others that want it.
void CopyToNext(const GatherPlan& plan, uint32_t layer_index, uint32_t slot,
                std::byte* out, size_t row_bytes) {
  const absl::Span<const uint32_t> next = plan.next_slots(layer_index);
  const std::byte* const row = out + slot * row_bytes;
  while ((slot = next[slot]) != GatherPlan::kNoSlot) {
    std::memcpy(out + slot * row_bytes, row, row_bytes);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<GatherCache>> GatherCache::Create(
    uint64_t max_bytes, const TableInfo& table,
    std::shared_ptr<CallMonitor> monitor) {
  const size_t row_bytes = table.row_format.row_bytes();
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<RowCache> rows,
                          RowCache::Create({max_bytes, row_bytes}));
  std::shared_ptr<GatherCache> cache(
      new GatherCache(std::move(rows), row_bytes, std::move(monitor)));
  for (const TableInfo::Layer& layer : table.layers) {
    ENGRAM_ASSIGN_OR_RETURN(
        const TableKey key,
        cache->cache_->KeyOf(table.version, layer.layer_id));
    cache->keys_.emplace_back(layer.layer_id, key);
  }
  ClientMetrics& metrics = cache->monitor_->metrics();
  metrics.row_cache_bytes.Set(
      static_cast<double>(cache->cache_->stats().bytes));
  metrics.row_cache_limit_bytes.Set(static_cast<double>(max_bytes));
  return cache;
}

uint64_t GatherCache::Fill(absl::Span<const LayerGather> layers,
                           GatherPlan& plan) {
  std::vector<bool> found(plan.unique_rows().size(), true);
  std::vector<uint32_t> misses;
  uint64_t hits = 0;
  for (const GatherPlan::Layer& layer : plan.layers()) {
    const LayerGather& gather = layers[layer.layer_index];
    const uint32_t rows = layer.end - layer.begin;
    const auto slots = plan.first_slots().subspan(layer.begin, rows);
    misses.clear();
    cache_->Lookup(KeyOf(gather.layer),
                   plan.unique_rows().subspan(layer.begin, rows), slots,
                   gather.out, misses);
    for (const uint32_t miss : misses) found[layer.begin + miss] = false;
    hits += rows - misses.size();
    if (rows == gather.row_ids.size()) continue;  // no duplicates
    for (uint32_t i = 0; i < rows; ++i) {
      if (!found[layer.begin + i]) continue;
      CopyToNext(plan, layer.layer_index, slots[i], gather.out.data(),
                 row_bytes_);
    }
  }
  if (hits > 0) plan.LeaveOut(found);
  ClientMetrics& metrics = monitor_->metrics();
  metrics.row_cache_hits.Increment(static_cast<double>(hits));
  metrics.row_cache_misses.Increment(static_cast<double>(found.size() - hits));
  return hits;
}

void GatherCache::Keep(absl::Span<const LayerId> layer_ids,
                       const CallRows& rows,
                       absl::Span<const absl::Span<std::byte>> outs) {
  for (const CallRows::Run& run : rows.runs()) {
    const uint32_t count = run.end - run.begin;
    Count(cache_->Insert(KeyOf(layer_ids[run.layer_index]),
                         rows.row_ids().subspan(run.begin, count),
                         rows.first_slots().subspan(run.begin, count),
                         outs[run.layer_index]));
  }
}

void GatherCache::KeepPacked(absl::Span<const LayerId> layer_ids,
                             const CallRows& rows,
                             absl::Span<const std::byte> packed) {
  for (const CallRows::Run& run : rows.runs()) {
    const uint32_t count = run.end - run.begin;
    Count(cache_->Insert(
        KeyOf(layer_ids[run.layer_index]),
        rows.row_ids().subspan(run.begin, count), {},
        packed.subspan(run.begin * row_bytes_, count * row_bytes_)));
  }
}

TableKey GatherCache::KeyOf(LayerId layer) const {
  size_t i = 0;
  while (i < keys_.size() && keys_[i].first != layer) ++i;
  ENGRAM_CHECK(i < keys_.size());
  return keys_[i].second;
}

void GatherCache::Count(const RowCache::Inserted& inserted) {
  ClientMetrics& metrics = monitor_->metrics();
  metrics.row_cache_inserts.Increment(static_cast<double>(inserted.inserts));
  metrics.row_cache_evictions.Increment(
      static_cast<double>(inserted.evictions));
  metrics.row_cache_dropped.Increment(static_cast<double>(inserted.dropped));
}

}  // namespace engram
