#ifndef ENGRAM_TABLE_SERVER_HEAT_FREQUENT_ROWS_H_
#define ENGRAM_TABLE_SERVER_HEAT_FREQUENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "table_server/heat/sampled_rows.h"

namespace engram {

// The rows that are asked for most, in bounded memory: lossy counting (Manku
// and Motwani, VLDB 2002), where the rows that are dropped when there are too
// many are the least frequent. A count is short of the truth by `missed` at
// most, and a row that is not here was asked for no more often than that.
//
// Thread-compatible.
class FrequentRows {
 public:
  // REQUIRES: max_rows >= 1.
  explicit FrequentRows(size_t max_rows);

  void Add(uint64_t key);

  uint64_t missed() const { return missed_; }
  size_t size() const { return rows_.size(); }
  std::vector<RowLookups> Rows() const;  // in no order

 private:
  struct Count {
    uint64_t seen = 0;
    uint64_t missed = 0;  // before it came, at most
  };
  void DropTheLeast();

  const size_t max_rows_;
  uint64_t missed_ = 0;
  absl::flat_hash_map<uint64_t, Count> rows_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_HEAT_FREQUENT_ROWS_H_
