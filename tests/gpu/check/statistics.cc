#include "tests/gpu/check/statistics.h"

#include <algorithm>
#include <cmath>

namespace engram::gpu_check {
namespace {

// Nearest rank.
double Quantile(const std::vector<double>& sorted, double quantile) {
  const auto rank = static_cast<size_t>(
      std::ceil(quantile * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

Summary Summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  Summary summary;
  summary.samples = samples.size();
  summary.median = samples.size() % 2 == 1
                       ? samples[middle]
                       : (samples[middle - 1] + samples[middle]) / 2;
  summary.p10 = Quantile(samples, 0.1);
  summary.p90 = Quantile(samples, 0.9);
  summary.least = samples.front();
  return summary;
}

size_t LaunchesPerSample(double launch_us, double sample_us, size_t sets,
                         size_t max_launches) {
  const double wanted = launch_us > 0 ? std::ceil(sample_us / launch_us)
                                      : static_cast<double>(max_launches);
  const double bounded =
      std::clamp(wanted, 1.0, static_cast<double>(max_launches));
  const auto launches = static_cast<size_t>(bounded);
  return (launches + sets - 1) / sets * sets;
}

}  // namespace engram::gpu_check
