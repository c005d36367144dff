#ifndef ENGRAM_TESTS_TESTING_LRU_ROWS_H_
#define ENGRAM_TESTS_TESTING_LRU_ROWS_H_

#include <cstddef>
#include <list>
#include <unordered_map>

#include "core/base/ids.h"

namespace engram {

// Which rows a cache of so many slots has that drops what was asked for least
// recently: what others are compared with.
class LruRows {
 public:
  explicit LruRows(size_t slots) : slots_(slots) {}

  // Whether the row is there; it is from then on.
  bool Ask(RowId row) {
    const auto found = at_.find(row);
    if (found != at_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    if (at_.size() == slots_) {
      at_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(row);
    at_.emplace(row, order_.begin());
    return false;
  }

 private:
  const size_t slots_;
  std::list<RowId> order_;  // the latest first
  std::unordered_map<RowId, std::list<RowId>::iterator> at_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_TESTING_LRU_ROWS_H_
