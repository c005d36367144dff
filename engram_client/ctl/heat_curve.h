#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_CURVE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engram_client/ctl/heat_merge.h"

namespace engram::ctl {

// Rows by how often they are asked for, the hottest first: some known by name,
// the others from a sample in which each stands for 1 / `sample_share` rows.
class HeatCurve {
 public:
  // `named` and `sampled`: lookups of each row, the most first, none of `named`
  // fewer than any of `sampled`. `lookups`: of all rows. `lookups_per_hit`:
  // those of named rows are estimates from one in so many; 0: exact.
  HeatCurve(std::vector<uint64_t> named, std::vector<uint64_t> sampled,
            double sample_share, uint64_t lookups, uint64_t lookups_per_hit);

  double rows() const { return named_.size() + sampled_.size() / share_; }

  // What share of all lookups the hottest `rows` get, and one standard error of
  // that. Grows with `rows`.
  double ShareOf(double rows) const;
  double ErrorOf(double rows) const;
  // The fewest rows that get `share`.
  double RowsFor(double share) const;

 private:
  // How many of `sampled_` are among the hottest `rows`, parts of one too.
  double SampledAmong(double rows) const;
  // How much of what is unaccounted for is due to the first `among` sampled
  // rows: as much as they have of the variance.
  double BlameOf(double among) const;
  static double SumOfFirst(const std::vector<double>& sums, double count);

  const std::vector<uint64_t> named_;
  const std::vector<uint64_t> sampled_;
  const double share_;
  const double lookups_;
  const double lookups_per_hit_;
  // Lookups that neither named rows have nor the sample's rows stand for; below
  // 0 where those are too many.
  double unaccounted_ = 0;
  // [n]: of the first n rows.
  std::vector<double> named_sums_;
  std::vector<double> sampled_sums_;
  std::vector<double> sampled_squares_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_CURVE_H_
