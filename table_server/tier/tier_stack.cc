#include "table_server/tier/tier_stack.h"

#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "table_server/store/damaged_partition.h"

namespace engram {
namespace {

std::vector<RowId> RowsAt(absl::Span<const RowId> row_ids,
                          absl::Span<const uint32_t> slots) {
  std::vector<RowId> rows;
  rows.reserve(slots.size());
  for (const uint32_t slot : slots) rows.push_back(row_ids[slot]);
  return rows;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TierStack>> TierStack::Create(
    const Manifest& manifest, const Parts& parts) {
  ENGRAM_CHECK(parts.host != nullptr && parts.store != nullptr);
  std::vector<TableKey> keys;
  for (const ManifestLayer& layer : manifest.layers()) {
    if (parts.cache == nullptr) break;
    ENGRAM_ASSIGN_OR_RETURN(
        const TableKey key,
        parts.cache->KeyOf(manifest.version(), layer.layer_id));
    keys.push_back(key);
  }
  return std::unique_ptr<TierStack>(new TierStack(parts, std::move(keys)));
}

TierStack::TierStack(const Parts& parts, std::vector<TableKey> keys)
    : parts_(parts), keys_(std::move(keys)) {}

absl::Status TierStack::CopyRows(size_t layer_index,
                                 absl::Span<const RowId> row_ids,
                                 absl::Span<std::byte> out,
                                 std::vector<uint32_t>& misses) const {
  const size_t first = misses.size();
  parts_.host->CopyAllocated(layer_index, row_ids, out, misses);
  if (misses.size() > first && parts_.cache != nullptr) {
    LookInCache(layer_index, row_ids, out, first, misses);
  }
  return absl::OkStatus();
}

absl::Status TierStack::ScanRows(size_t layer_index,
                                 absl::Span<const RowId> row_ids,
                                 absl::Span<std::byte> out,
                                 std::vector<uint32_t>& misses) const {
  parts_.host->CopyAllocated(layer_index, row_ids, out, misses);
  return absl::OkStatus();
}

void TierStack::LookInCache(size_t layer_index, absl::Span<const RowId> row_ids,
                            absl::Span<std::byte> out, size_t first,
                            std::vector<uint32_t>& misses) const {
  const std::vector<uint32_t> slots(misses.begin() + first, misses.end());
  const std::vector<RowId> rows = RowsAt(row_ids, slots);
  misses.resize(first);
  parts_.cache->Lookup(keys_[layer_index], rows, slots, out, misses);
  // From places among the slots to the slots themselves.
  for (size_t i = first; i < misses.size(); ++i) misses[i] = slots[misses[i]];
}

void TierStack::Fetch(RowFetch fetch, OnRows done) const {
  fetches_.fetch_add(1, std::memory_order_relaxed);
  fetched_rows_.fetch_add(fetch.wanted.size(), std::memory_order_relaxed);
  const bool keep = parts_.cache != nullptr && !fetch.is_scan;
  const size_t layer_index = fetch.layer_index;
  const absl::Span<std::byte> out = fetch.out;
  std::vector<uint32_t> slots;
  std::vector<RowId> rows;
  if (keep) {
    slots = fetch.wanted;
    rows = RowsAt(fetch.row_ids, slots);
  }
  parts_.store->Fetch(
      std::move(fetch), [this, keep, layer_index, out, slots = std::move(slots),
                         rows = std::move(rows),
                         done = std::move(done)](absl::Status status) mutable {
        HearEnd(status);
        if (keep && status.ok()) {
          parts_.cache->Insert(keys_[layer_index], rows, slots, out);
        }
        done(std::move(status));
      });
}

void TierStack::HearEnd(const absl::Status& status) const {
  if (status.ok()) return;
  failed_fetches_.fetch_add(1, std::memory_order_relaxed);
  if (parts_.damaged == nullptr) return;
  const std::optional<PartitionRef> damaged = DamagedPartitionOf(status);
  if (damaged.has_value()) parts_.damaged->Report(*damaged);
}

size_t TierStack::memory_bytes() const {
  const size_t cached =
      parts_.cache == nullptr ? 0 : parts_.cache->stats().bytes;
  return parts_.host->memory_bytes() + cached;
}

TierStack::Stats TierStack::stats() const {
  return {.fetches = fetches_.load(std::memory_order_relaxed),
          .fetched_rows = fetched_rows_.load(std::memory_order_relaxed),
          .failed_fetches = failed_fetches_.load(std::memory_order_relaxed)};
}

}  // namespace engram
