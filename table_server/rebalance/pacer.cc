#include "table_server/rebalance/pacer.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace engram {

Pacer::Pacer(Options options, const Clock& clock)
    : options_(options), clock_(clock) {
  ENGRAM_CHECK(std::isfinite(options.time_share) && options.time_share >= 0);
}

absl::Duration Pacer::After(uint64_t bytes, absl::Duration took) {
  took = std::max(took, absl::ZeroDuration());
  const absl::Time now = clock_.Now();
  MutexLock lock(&mutex_);
  if (now < last_) {  // the clock was set back: nobody is to wait for that
    bytes_paid_ -= last_ - now;
    time_paid_ -= last_ - now;
  }
  last_ = now;
  const absl::Time began = now - took;
  absl::Duration wait;
  if (options_.bytes_per_second > 0) {
    bytes_paid_ = std::max(bytes_paid_, began) +
                  absl::Seconds(static_cast<double>(bytes) /
                                static_cast<double>(options_.bytes_per_second));
    wait = std::max(wait, bytes_paid_ - now);
  }
  if (options_.time_share > 0) {
    time_paid_ = std::max(time_paid_, began) + took / options_.time_share;
    wait = std::max(wait, time_paid_ - now);
  }
  return wait;
}

}  // namespace engram
