#include "engram_client/plan/gather_plan.h"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "core/base/check.h"
#include "engram_client/plan/slot_sort.h"

namespace engram {
namespace {

// A table at most half full: few ids meet another on their way.
size_t TableSize(size_t rows) { return std::bit_ceil(2 * rows); }

// Odd, and drawn by each process: row ids follow from what users write, who
// could otherwise choose ids that all meet.
uint32_t HashMultiplier() {
  static const uint32_t multiplier = std::random_device()() | 1;
  return multiplier;
}

uint32_t HashOf(RowId row, uint32_t multiplier, int table_bits) {
  return row * multiplier >> (32 - table_bits);
}

}  // namespace

// Of one layer at a time, never cleared as a whole.
struct GatherPlan::Scratch {
  explicit Scratch(size_t rows)
      : numbers(std::make_unique_for_overwrite<uint32_t[]>(4 * rows + 1 +
                                                           TableSize(rows))),
        sort(std::make_unique_for_overwrite<uint64_t[]>(SlotSortScratch(rows))),
        last_slots(numbers.get()),
        partitions(last_slots + rows),
        sorted_partitions(partitions + rows),
        part_begins(sorted_partitions + rows),
        table(part_begins + rows + 1) {}

  const std::unique_ptr<uint32_t[]> numbers;
  const std::unique_ptr<uint64_t[]> sort;
  uint32_t* const last_slots;  // that wants a unique row, so far
  uint32_t* const partitions;  // of the unique rows
  uint32_t* const sorted_partitions;
  uint32_t* const part_begins;
  uint32_t* const table;  // 1 + index of a unique row; 0: none
};

GatherPlan::GatherPlan(absl::Span<const LayerGather> layers,
                       uint64_t partition_rows) {
  ENGRAM_CHECK(std::has_single_bit(partition_rows));
  const int partition_shift = std::countr_zero(partition_rows);
  size_t total = 0;
  size_t largest = 0;
  for (const LayerGather& layer : layers) {
    total += layer.row_ids.size();
    largest = std::max(largest, layer.row_ids.size());
  }
  numbers_ = std::make_unique_for_overwrite<uint32_t[]>(4 * total);
  rows_ = numbers_.get();
  first_slots_ = rows_ + total;
  by_partition_ = first_slots_ + total;
  all_next_slots_ = by_partition_ + total;
  next_slots_.resize(layers.size());
  Scratch scratch(largest);
  for (uint32_t i = 0; i < layers.size(); ++i) {
    const absl::Span<const RowId> ids = layers[i].row_ids;
    if (ids.empty()) continue;
    next_slots_[i] = {all_next_slots_ + row_count_, ids.size()};
    const size_t unique = FindDistinct(ids, scratch);
    AddParts(i, unique, partition_shift, scratch);
    const auto begin = static_cast<uint32_t>(unique_count_);
    unique_count_ += unique;
    row_count_ += ids.size();
    layers_.push_back({i, begin, static_cast<uint32_t>(unique_count_)});
  }
  asked_count_ = unique_count_;
}

void GatherPlan::LeaveOut(const std::vector<bool>& found) {
  uint32_t asked = 0;
  size_t parts = 0;
  for (Part part : parts_) {
    const uint32_t begin = asked;
    for (uint32_t i = part.begin; i < part.end; ++i) {
      by_partition_[asked] = by_partition_[i];
      asked += found[by_partition_[i]] ? 0 : 1;
    }
    part.begin = begin;
    part.end = asked;
    if (asked > begin) parts_[parts++] = part;
  }
  parts_.resize(parts);
  asked_count_ = asked;
}

size_t GatherPlan::FindDistinct(absl::Span<const RowId> ids, Scratch& scratch) {
  RowId* const rows = rows_ + unique_count_;
  uint32_t* const first_slots = first_slots_ + unique_count_;
  uint32_t* const next_slots = all_next_slots_ + row_count_;
  uint32_t* const table = scratch.table;
  const size_t table_size = TableSize(ids.size());
  const int table_bits = std::countr_zero(table_size);
  const uint32_t multiplier = HashMultiplier();
  std::fill_n(table, table_size, 0);
  std::fill_n(next_slots, ids.size(), kNoSlot);
  uint32_t unique = 0;
  for (uint32_t slot = 0; slot < ids.size(); ++slot) {
    const RowId row = ids[slot];
    size_t at = HashOf(row, multiplier, table_bits);
    while (table[at] != 0 && rows[table[at] - 1] != row) {
      at = (at + 1) & (table_size - 1);
    }
    if (table[at] == 0) {
      rows[unique] = row;
      first_slots[unique] = slot;
      scratch.last_slots[unique] = slot;
      table[at] = ++unique;
    } else {
      next_slots[std::exchange(scratch.last_slots[table[at] - 1], slot)] = slot;
    }
  }
  return unique;
}

// In a large table it cannot be foretold where a partition ends: a branch on it
// would often be taken wrongly. So every begin is written, and the next goes
// over what was not to stay.
void GatherPlan::AddParts(uint32_t layer_index, size_t unique,
                          int partition_shift, Scratch& scratch) {
  const RowId* const rows = rows_ + unique_count_;
  for (size_t i = 0; i < unique; ++i) {
    // A partition may have more rows than an id has values.
    scratch.partitions[i] =
        static_cast<uint32_t>(uint64_t{rows[i]} >> partition_shift);
  }
  uint32_t* const order = by_partition_ + unique_count_;
  const uint32_t* const sorted = scratch.sorted_partitions;
  SortSlots({scratch.partitions, unique}, scratch.sort.get(),
            scratch.sorted_partitions, order);
  const auto base = static_cast<uint32_t>(unique_count_);
  for (size_t i = 0; i < unique; ++i) order[i] += base;

  size_t parts = 0;
  scratch.part_begins[0] = 0;
  for (size_t i = 1; i < unique; ++i) {
    parts += sorted[i] != sorted[i - 1] ? 1 : 0;
    scratch.part_begins[parts] = sorted[i] != sorted[i - 1]
                                     ? static_cast<uint32_t>(i)
                                     : scratch.part_begins[parts];
  }
  ++parts;
  scratch.part_begins[parts] = static_cast<uint32_t>(unique);

  const size_t first_part = parts_.size();
  parts_.resize(first_part + parts);
  for (size_t i = 0; i < parts; ++i) {
    const uint32_t begin = scratch.part_begins[i];
    parts_[first_part + i] = {layer_index, PartitionId{sorted[begin]},
                              base + begin, base + scratch.part_begins[i + 1]};
  }
}

}  // namespace engram
