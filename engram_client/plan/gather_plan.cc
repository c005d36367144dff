#include "engram_client/plan/gather_plan.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/check.h"

namespace engram {
namespace {

// One key a wanted slot: row id above, slot below. Sorting by the row alone is
// enough, because a stable sort keeps the slots ascending.
constexpr int kRowShift = 32;
constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;
// Below this, clearing the counters costs more than comparing.
constexpr size_t kRadixFrom = 1024;

// Radix sort by the low `row_bits` bits of the row, least digit first. Leaves
// the result in `keys`; `scratch` has the same size.
void RadixSort(std::vector<uint64_t>& keys, std::vector<uint64_t>& scratch,
               int row_bits) {
  std::array<uint32_t, kDigits> next;
  for (int bit = 0; bit < row_bits; bit += kDigitBits) {
    const int shift = kRowShift + bit;
    next.fill(0);
    for (const uint64_t key : keys) ++next[(key >> shift) & (kDigits - 1)];
    uint32_t sum = 0;
    for (uint32_t& count : next) {
      const uint32_t here = count;
      count = sum;
      sum += here;
    }
    for (const uint64_t key : keys) {
      scratch[next[(key >> shift) & (kDigits - 1)]++] = key;
    }
    keys.swap(scratch);
  }
}

void SortKeys(std::vector<uint64_t>& keys, std::vector<uint64_t>& scratch) {
  if (keys.size() < kRadixFrom) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  uint64_t all = 0;
  for (const uint64_t key : keys) all |= key >> kRowShift;
  scratch.resize(keys.size());
  RadixSort(keys, scratch, static_cast<int>(std::bit_width(all)));
}

}  // namespace

GatherPlan::GatherPlan(absl::Span<const LayerGather> layers,
                       uint64_t partition_rows) {
  ENGRAM_CHECK(std::has_single_bit(partition_rows));
  const int partition_shift = std::countr_zero(partition_rows);
  size_t total = 0;
  for (const LayerGather& layer : layers) total += layer.row_ids.size();
  rows_.reserve(total);
  positions_.reserve(total);
  first_position_.reserve(total + 1);

  std::vector<uint64_t> keys;
  std::vector<uint64_t> scratch;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    const absl::Span<const RowId> ids = layers[i].row_ids;
    keys.resize(ids.size());
    for (size_t slot = 0; slot < ids.size(); ++slot) {
      keys[slot] = uint64_t{ids[slot]} << kRowShift | slot;
    }
    SortKeys(keys, scratch);
    AddLayer(i, partition_shift, keys);
  }
  first_position_.push_back(static_cast<uint32_t>(positions_.size()));
}

void GatherPlan::AddLayer(uint32_t layer_index, int partition_shift,
                          absl::Span<const uint64_t> sorted_keys) {
  bool first = true;
  for (const uint64_t key : sorted_keys) {
    const RowId row = static_cast<RowId>(key >> kRowShift);
    if (first || row != rows_.back()) {
      const PartitionId partition{
          static_cast<uint32_t>(uint64_t{row} >> partition_shift)};
      if (first || partition != parts_.back().partition) {
        const auto begin = static_cast<uint32_t>(rows_.size());
        parts_.push_back({layer_index, partition, begin, begin});
      }
      rows_.push_back(row);
      first_position_.push_back(static_cast<uint32_t>(positions_.size()));
      ++parts_.back().end;
      first = false;
    }
    positions_.push_back(static_cast<uint32_t>(key));
  }
}

}  // namespace engram
