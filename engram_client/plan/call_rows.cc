#include "engram_client/plan/call_rows.h"

#include <algorithm>

#include "core/base/check.h"
#include "engram_client/plan/slot_sort.h"

namespace engram {
namespace {

constexpr uint32_t kNoCall = ~uint32_t{0};
// Calls that have at least this share of a plan's rows are ordered together.
constexpr size_t kShareOfPlan = 8;

uint32_t RowsOf(absl::Span<const GatherPlan::Part> parts) {
  uint32_t rows = 0;
  for (const GatherPlan::Part& part : parts) rows += part.rows();
  return rows;
}

// Which call has each unique row.
std::unique_ptr<uint32_t[]> CallOfRow(
    const GatherPlan& plan,
    absl::Span<const absl::Span<const GatherPlan::Part>> calls) {
  const size_t count = plan.unique_rows().size();
  auto call_of = std::make_unique_for_overwrite<uint32_t[]>(count);
  std::fill_n(call_of.get(), count, kNoCall);
  for (uint32_t call = 0; call < calls.size(); ++call) {
    for (const GatherPlan::Part& part : calls[call]) {
      for (uint32_t i = part.begin; i < part.end; ++i) {
        call_of[plan.by_partition()[i]] = call;
      }
    }
  }
  return call_of;
}

}  // namespace

std::vector<CallRows> CallRows::Order(
    const GatherPlan& plan,
    absl::Span<const absl::Span<const GatherPlan::Part>> calls) {
  size_t rows = 0;
  for (const absl::Span<const GatherPlan::Part> parts : calls) {
    rows += RowsOf(parts);
  }
  if (rows * kShareOfPlan >= plan.unique_rows().size()) {
    return OrderAll(plan, calls);
  }
  std::vector<CallRows> ordered;
  ordered.reserve(calls.size());
  for (const absl::Span<const GatherPlan::Part> parts : calls) {
    ordered.push_back(OrderOne(plan, parts));
  }
  return ordered;
}

CallRows CallRows::OrderOne(const GatherPlan& plan,
                            absl::Span<const GatherPlan::Part> parts) {
  CallRows ordered(RowsOf(parts));
  const size_t count = ordered.row_count_;
  uint32_t* const row_ids = ordered.numbers_.get();
  uint32_t* const first_slots = row_ids + count;
  // Unique rows stand by layer and first slot: so their indices, sorted, are
  // the order.
  const auto indices = std::make_unique_for_overwrite<uint32_t[]>(count);
  const auto scratch =
      std::make_unique_for_overwrite<uint64_t[]>(SlotSortScratch(count));
  uint32_t* next = indices.get();
  for (const GatherPlan::Part& part : parts) {
    const auto rows = plan.by_partition().subspan(part.begin, part.rows());
    next = std::copy(rows.begin(), rows.end(), next);
  }
  SortSlots({indices.get(), count}, scratch.get(), row_ids, first_slots);
  size_t row = 0;
  for (const GatherPlan::Layer& layer : plan.layers()) {
    const size_t begin = row;
    for (; row < count && row_ids[row] < layer.end; ++row) {
      const uint32_t index = row_ids[row];
      row_ids[row] = plan.unique_rows()[index];
      first_slots[row] = plan.first_slots()[index];
    }
    if (row == begin) continue;
    ordered.runs_.push_back({layer.layer_index, static_cast<uint32_t>(begin),
                             static_cast<uint32_t>(row)});
  }
  return ordered;
}

std::vector<CallRows> CallRows::OrderAll(
    const GatherPlan& plan,
    absl::Span<const absl::Span<const GatherPlan::Part>> calls) {
  struct Cursor {
    RowId* row_ids;
    uint32_t* first_slots;
    uint32_t next = 0;
    uint32_t run_begin = 0;
  };
  std::vector<CallRows> ordered;
  std::vector<Cursor> cursors;
  ordered.reserve(calls.size());
  cursors.reserve(calls.size());
  for (const absl::Span<const GatherPlan::Part> parts : calls) {
    ordered.push_back(CallRows(RowsOf(parts)));
    uint32_t* const numbers = ordered.back().numbers_.get();
    cursors.push_back({numbers, numbers + ordered.back().row_count_});
  }
  const std::unique_ptr<uint32_t[]> call_of = CallOfRow(plan, calls);
  for (const GatherPlan::Layer& layer : plan.layers()) {
    for (uint32_t i = layer.begin; i < layer.end; ++i) {
      if (call_of[i] == kNoCall) continue;
      Cursor& cursor = cursors[call_of[i]];
      cursor.row_ids[cursor.next] = plan.unique_rows()[i];
      cursor.first_slots[cursor.next++] = plan.first_slots()[i];
    }
    for (size_t call = 0; call < calls.size(); ++call) {
      Cursor& cursor = cursors[call];
      if (cursor.next == cursor.run_begin) continue;
      ordered[call].runs_.push_back(
          {layer.layer_index, cursor.run_begin, cursor.next});
      cursor.run_begin = cursor.next;
    }
  }
  for (size_t call = 0; call < calls.size(); ++call) {
    ENGRAM_CHECK(cursors[call].next == ordered[call].row_count_);
  }
  return ordered;
}

}  // namespace engram
