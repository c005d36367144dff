#include "table_server/heat/heat_recording.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "core/base/thread_number.h"
#include "core/wire/heat_hash.h"

namespace engram {
namespace {

constexpr size_t kStripes = 8;

// Which lookup of each kLookupsPerHit is drawn.
uint64_t NextRandom() {
  thread_local uint64_t state = ThreadNumber() << 48;
  return HeatHash(state++);
}

}  // namespace

HeatRecording::HeatRecording(const Manifest& manifest, size_t max_sampled_rows)
    : manifest_(manifest),
      max_sampled_rows_(max_sampled_rows),
      partition_shift_(std::countr_zero(manifest.partition_rows())) {
  ENGRAM_CHECK(max_sampled_rows >= kParts);
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    first_partition_.push_back(partition_count_);
    partition_count_ += manifest.partition_count(i);
  }
  partition_lookups_ =
      std::vector<std::atomic<uint64_t>>(kStripes * partition_count_);
  for (size_t i = 0; i < kParts; ++i) {
    parts_.push_back(std::make_unique<Part>(max_sampled_rows / kParts,
                                            kMaxHotRows / kParts));
    last_hashes_[i].store(SampledRows::kAll, std::memory_order_relaxed);
  }
}

void HeatRecording::Add(size_t layer_index, absl::Span<const RowId> row_ids) {
  std::atomic<uint64_t>* const partitions =
      partition_lookups_.data() + ThreadNumber() % kStripes * partition_count_ +
      first_partition_[layer_index];
  for (const RowId row : row_ids) {
    partitions[uint64_t{row} >> partition_shift_].fetch_add(
        1, std::memory_order_relaxed);
  }
  const LayerId layer = manifest_.layers()[layer_index].layer_id;
  AddToSample(layer, row_ids);
  AddToHotRows(layer, row_ids);
}

void HeatRecording::AddToSample(LayerId layer,
                                absl::Span<const RowId> row_ids) {
  for (const RowId row : row_ids) {
    const uint64_t key = HeatKey(layer, row);
    const uint64_t hash = HeatHash(key);
    std::atomic<uint64_t>& last_hash = last_hashes_[PartOf(hash)];
    if (hash > last_hash.load(std::memory_order_relaxed)) continue;
    Part& part = *parts_[PartOf(hash)];
    MutexLock lock(&part.mutex);
    if (part.closed || !part.sample.Add(key, hash)) continue;
    last_hash.store(part.sample.last_hash(), std::memory_order_relaxed);
  }
}

// One of each run of kLookupsPerHit, any of them as likely. Of a shorter run at
// the end perhaps none: each lookup has the same chance.
void HeatRecording::AddToHotRows(LayerId layer,
                                 absl::Span<const RowId> row_ids) {
  for (size_t run = 0; run < row_ids.size(); run += kLookupsPerHit) {
    const size_t drawn = run + NextRandom() % kLookupsPerHit;
    if (drawn >= row_ids.size()) continue;
    const uint64_t key = HeatKey(layer, row_ids[drawn]);
    Part& part = *parts_[PartOf(HeatHash(key))];
    MutexLock lock(&part.mutex);
    if (!part.closed) part.hot.Add(key);
  }
}

void HeatRecording::Close() {
  for (const auto& part : parts_) {
    MutexLock lock(&part->mutex);
    part->closed = true;
  }
}

uint64_t HeatRecording::lookups() const {
  uint64_t lookups = 0;
  for (const std::atomic<uint64_t>& count : partition_lookups_) {
    lookups += count.load(std::memory_order_relaxed);
  }
  return lookups;
}

uint64_t HeatRecording::LookupsOf(size_t layer_index,
                                  uint32_t partition) const {
  uint64_t lookups = 0;
  for (size_t stripe = 0; stripe < kStripes; ++stripe) {
    lookups += partition_lookups_[stripe * partition_count_ +
                                  first_partition_[layer_index] + partition]
                   .load(std::memory_order_relaxed);
  }
  return lookups;
}

size_t HeatRecording::sampled_rows() const {
  size_t rows = 0;
  for (const auto& part : parts_) {
    MutexLock lock(&part->mutex);
    rows += part->sample.size();
  }
  return rows;
}

uint64_t HeatRecording::last_hash() const {
  uint64_t least = SampledRows::kAll;
  for (const std::atomic<uint64_t>& last_hash : last_hashes_) {
    least = std::min(least, last_hash.load(std::memory_order_relaxed));
  }
  return least;
}

std::vector<RowLookups> HeatRecording::SampleOf(size_t part,
                                                uint64_t last_hash) const {
  MutexLock lock(&parts_[part]->mutex);
  return parts_[part]->sample.Rows(last_hash);
}

std::vector<RowLookups> HeatRecording::HotRowsOf(size_t part) const {
  std::vector<RowLookups> rows;
  {
    MutexLock lock(&parts_[part]->mutex);
    rows = parts_[part]->hot.Rows();
  }
  for (RowLookups& row : rows) row.lookups *= kLookupsPerHit;
  return rows;
}

uint64_t HeatRecording::hot_missed() const {
  uint64_t missed = 0;
  for (const auto& part : parts_) {
    MutexLock lock(&part->mutex);
    missed = std::max(missed, part->hot.missed());
  }
  return missed * kLookupsPerHit;
}

}  // namespace engram
