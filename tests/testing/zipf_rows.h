#ifndef ENGRAM_TESTS_TESTING_ZIPF_ROWS_H_
#define ENGRAM_TESTS_TESTING_ZIPF_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/ids.h"

namespace engram {

// Row r in proportion to (r + 1)^-exponent.
class ZipfRows {
 public:
  ZipfRows(double exponent, uint32_t rows) : sums_(rows) {
    double sum = 0;
    for (uint32_t i = 0; i < rows; ++i) {
      sums_[i] = sum += std::pow(i + 1.0, -exponent);
    }
  }
  RowId Draw(std::mt19937_64& random) const {
    const double at =
        std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto found = std::lower_bound(sums_.begin(), sums_.end(), at);
    return static_cast<RowId>(std::min<ptrdiff_t>(
        found - sums_.begin(), static_cast<ptrdiff_t>(sums_.size()) - 1));
  }

 private:
  std::vector<double> sums_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_TESTING_ZIPF_ROWS_H_
