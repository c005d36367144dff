#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_IDS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_IDS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/ctl/load_random.h"

namespace engram::ctl {

// Draws row ids of one layer, each on its own, so that they may repeat.
//
// Exponent 0: uniform. Exponent S: the row of rank r = 1 .. row_count comes
// with a probability proportional to r^-S (Zipf), by the rejection-inversion
// of Hoermann and Derflinger 1996: exact for any S, about one logarithm and
// one exponential a draw, no table. Row of rank r = (r - 1) * m % row_count,
// where m is the first number from floor(0.618 * row_count) on that has no
// common factor with it: the hot rows lie far apart, as hashes put them.
//
// Immutable. Thread safety: all methods may be called concurrently.
class RowIdDraw {
 public:
  // REQUIRES: 1 <= row_count <= 2^32, exponent >= 0.
  RowIdDraw(uint64_t row_count, double exponent);

  void Fill(LoadRandom& random, absl::Span<RowId> out) const;

  // REQUIRES: 1 <= rank <= row_count.
  RowId RowOfRank(uint64_t rank) const;

 private:
  uint64_t DrawRank(LoadRandom& random) const;
  // The integral of x^-S, its inverse, and x^-S.
  double Integral(double x) const;
  double InverseIntegral(double y) const;
  double Density(double x) const;

  const uint64_t row_count_;
  const double exponent_;
  const uint64_t step_;
  // Limits of the area that is drawn from, and how far below its rank a value
  // may lie to be taken without a closer look.
  double area_first_ = 0;
  double area_last_ = 0;
  double sure_ = 0;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_IDS_H_
