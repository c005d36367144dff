#include "engram_client/ctl/heat_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace engram::ctl {
namespace {

constexpr int kHalvings = 60;
constexpr double kRounding = 1e-6;  // of a row

std::vector<double> Sums(const std::vector<uint64_t>& lookups, int power) {
  std::vector<double> sums = {0};
  for (const uint64_t count : lookups) {
    const auto value = static_cast<double>(count);
    sums.push_back(sums.back() + (power == 2 ? value * value : value));
  }
  return sums;
}

}  // namespace

HeatCurve::HeatCurve(std::vector<uint64_t> named, std::vector<uint64_t> sampled,
                     double sample_share, uint64_t lookups,
                     uint64_t lookups_per_hit)
    : named_(std::move(named)),
      sampled_(std::move(sampled)),
      share_(sample_share),
      lookups_(static_cast<double>(std::max<uint64_t>(lookups, 1))),
      lookups_per_hit_(static_cast<double>(lookups_per_hit)),
      named_sums_(Sums(named_, 1)),
      sampled_sums_(Sums(sampled_, 1)),
      sampled_squares_(Sums(sampled_, 2)) {
  if (sampled_.empty()) return;
  // Not so low that rows would take from the share of hotter ones.
  unaccounted_ = std::max(
      lookups_ - named_sums_.back() - sampled_sums_.back() / share_,
      -sampled_squares_.back() / (share_ * static_cast<double>(sampled_[0])));
}

double HeatCurve::SumOfFirst(const std::vector<double>& sums, double count) {
  const double last = static_cast<double>(sums.size() - 1);
  const auto whole = static_cast<size_t>(std::clamp(count, 0.0, last));
  if (whole + 1 == sums.size()) return sums.back();
  return sums[whole] + (count - whole) * (sums[whole + 1] - sums[whole]);
}

double HeatCurve::SampledAmong(double rows) const {
  return std::clamp((rows - named_.size()) * share_, 0.0,
                    static_cast<double>(sampled_.size()));
}

double HeatCurve::BlameOf(double among) const {
  return SumOfFirst(sampled_squares_, among) / sampled_squares_.back();
}

double HeatCurve::ShareOf(double rows) const {
  const double named = SumOfFirst(named_sums_, rows);
  if (rows <= named_.size() || sampled_.empty()) {
    return std::min(named / lookups_, 1.0);
  }
  const double among = SampledAmong(rows);
  const double hottest = named + SumOfFirst(sampled_sums_, among) / share_ +
                         BlameOf(among) * unaccounted_;
  return std::clamp(hottest / lookups_, 0.0, 1.0);
}

// Which rows are in the sample, and how many rows the hotter ones stand for.
double HeatCurve::ErrorOf(double rows) const {
  const double named = lookups_per_hit_ * SumOfFirst(named_sums_, rows);
  if (rows <= named_.size() || sampled_.empty()) {
    return std::sqrt(named) / lookups_;
  }
  const double among = SampledAmong(rows);
  const double blame = BlameOf(among);
  const auto next = std::min(static_cast<size_t>(among), sampled_.size() - 1);
  const auto at_rank = static_cast<double>(sampled_[next]);
  const double sampled =
      blame * (1 - blame) * sampled_squares_.back() + at_rank * at_rank * among;
  return std::sqrt((1 - share_) * sampled / (share_ * share_) +
                   (1 - blame) * (1 - blame) * named) /
         lookups_;
}

double HeatCurve::RowsFor(double share) const {
  double low = 0;
  double high = rows();
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    (ShareOf(middle) >= share ? high : low) = middle;
  }
  return std::ceil(high - kRounding);
}

}  // namespace engram::ctl
