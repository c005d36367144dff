#include "engram_client/ctl/load_ids.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"

namespace engram::ctl {
namespace {

uint64_t StepBetweenRanks(uint64_t row_count) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  auto step = static_cast<uint64_t>(kGoldenRatio * row_count);
  step = std::max<uint64_t>(step, 1);
  while (std::gcd(step, row_count) != 1) ++step;
  return step;
}

// log(1 + x) / x and (exp(x) - 1) / x, whole where x is 0 or nearly so, which
// exponents of 1 or nearly so make it.
double LogRatio(double x) {
  if (std::abs(x) > 1e-8) return std::log1p(x) / x;
  return 1 - x * (0.5 - x / 3);
}
double ExpRatio(double x) {
  if (std::abs(x) > 1e-8) return std::expm1(x) / x;
  return 1 + x * (0.5 + x / 6);
}

}  // namespace

RowIdDraw::RowIdDraw(uint64_t row_count, double exponent)
    : row_count_(row_count),
      exponent_(exponent),
      step_(StepBetweenRanks(row_count)) {
  ENGRAM_CHECK(row_count >= 1 && row_count <= uint64_t{1} << 32 &&
               exponent >= 0);
  area_first_ = Integral(1.5) - 1;
  area_last_ = Integral(static_cast<double>(row_count) + 0.5);
  sure_ = 2 - InverseIntegral(Integral(2.5) - Density(2));
}

void RowIdDraw::Fill(LoadRandom& random, absl::Span<RowId> out) const {
  if (exponent_ == 0) {
    for (RowId& id : out) id = static_cast<RowId>(random.Below(row_count_));
    return;
  }
  for (RowId& id : out) id = RowOfRank(DrawRank(random));
}

RowId RowIdDraw::RowOfRank(uint64_t rank) const {
  // Both below 2^32, so the product fits.
  return static_cast<RowId>((rank - 1) * step_ % row_count_);
}

uint64_t RowIdDraw::DrawRank(LoadRandom& random) const {
  while (true) {
    const double area = area_last_ + random.Unit() * (area_first_ - area_last_);
    const double x = InverseIntegral(area);
    const double rank =
        std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(row_count_));
    if (rank - x <= sure_ || area >= Integral(rank + 0.5) - Density(rank)) {
      return static_cast<uint64_t>(rank);
    }
  }
}

double RowIdDraw::Integral(double x) const {
  const double log_x = std::log(x);
  return ExpRatio((1 - exponent_) * log_x) * log_x;
}

double RowIdDraw::InverseIntegral(double y) const {
  // Rounding may have taken it below the least value that there is.
  const double t = std::max(y * (1 - exponent_), -1.0);
  return std::exp(LogRatio(t) * y);
}

double RowIdDraw::Density(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

}  // namespace engram::ctl
