#include "core/base/backoff.h"

#include <algorithm>
#include <random>

namespace engram {

double RandomBackoffFactor() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<>(0.5, 1.0)(random);
}

absl::Duration BackoffDelay(const BackoffOptions& options, uint32_t failures) {
  return BackoffDelay(options, failures, RandomBackoffFactor());
}

absl::Duration BackoffDelay(const BackoffOptions& options, uint32_t failures,
                            double factor) {
  const uint32_t doublings = std::min<uint32_t>(failures - 1, 20);
  const absl::Duration delay =
      std::min(options.longest, options.first * (int64_t{1} << doublings));
  return delay * factor;
}

}  // namespace engram
