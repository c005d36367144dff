#include "table_server/heat/frequent_rows.h"

#include <algorithm>

#include "core/base/check.h"

namespace engram {

FrequentRows::FrequentRows(size_t max_rows) : max_rows_(max_rows) {
  ENGRAM_CHECK(max_rows >= 1);
}

void FrequentRows::Add(uint64_t key) {
  const auto [row, is_new] = rows_.try_emplace(key, Count{0, missed_});
  ++row->second.seen;
  if (rows_.size() > max_rows_) DropTheLeast();
}

// A quarter of them and all that were seen as seldom.
void FrequentRows::DropTheLeast() {
  std::vector<uint64_t> most;  // that each may have been asked for
  most.reserve(rows_.size());
  for (const auto& [key, count] : rows_) {
    most.push_back(count.seen + count.missed);
  }
  const auto last_out =
      most.begin() + static_cast<ptrdiff_t>((most.size() - 1) / 4);
  std::nth_element(most.begin(), last_out, most.end());
  missed_ = *last_out;
  absl::erase_if(rows_, [&](const auto& row) {
    return row.second.seen + row.second.missed <= missed_;
  });
}

std::vector<RowLookups> FrequentRows::Rows() const {
  std::vector<RowLookups> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, count] : rows_) rows.push_back({key, count.seen});
  return rows;
}

}  // namespace engram
