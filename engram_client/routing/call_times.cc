#include "engram_client/routing/call_times.h"

#include <algorithm>

namespace engram {

void CallTimes::Record(uint64_t rows, absl::Duration time, absl::Time now) {
  tracker_.Record(LatencyTracker::ClassOf(rows), time, now);
}

absl::Duration CallTimes::Usual(uint64_t rows, absl::Time now) {
  return absl::Microseconds(
      ClassOf(rows, now).usual_us.load(std::memory_order_relaxed));
}

absl::Duration CallTimes::HedgeDelay(uint64_t rows, absl::Time now) {
  const int64_t slow_us =
      ClassOf(rows, now).slow_us.load(std::memory_order_relaxed);
  if (slow_us == 0) return options_.first_hedge_delay;
  return std::max(options_.shortest_hedge_delay, absl::Microseconds(slow_us));
}

const CallTimes::Class& CallTimes::ClassOf(uint64_t rows, absl::Time now) {
  const size_t index = LatencyTracker::ClassOf(rows);
  Class& of_size = classes_[index];
  const int64_t now_us = absl::ToUnixMicros(now);
  int64_t refresh_at = of_size.refresh_at_us.load(std::memory_order_relaxed);
  if (now_us < refresh_at) return of_size;
  // One thread looks, the others go on with what was.
  if (!of_size.refresh_at_us.compare_exchange_strong(
          refresh_at, absl::ToUnixMicros(now + options_.refresh_period))) {
    return of_size;
  }
  Look(index, now);
  return of_size;
}

void CallTimes::Look(size_t size_class, absl::Time now) {
  absl::Duration slow = Slow(size_class, now);
  if (slow == absl::ZeroDuration()) {
    slow =
        std::min(SlowLikeOthers(size_class, now), options_.first_hedge_delay);
  }
  classes_[size_class].usual_us.store(
      absl::ToInt64Microseconds(Percentile(size_class, 0.5, now)),
      std::memory_order_relaxed);
  classes_[size_class].slow_us.store(absl::ToInt64Microseconds(slow),
                                     std::memory_order_relaxed);
}

absl::Duration CallTimes::Percentile(size_t size_class, double share,
                                     absl::Time now) {
  if (tracker_.Count(size_class, now) < options_.min_calls) {
    return absl::ZeroDuration();
  }
  return tracker_.Percentile(size_class, share, now);
}

absl::Duration CallTimes::SlowLikeOthers(size_t size_class, absl::Time now) {
  for (size_t larger = size_class + 1; larger < classes_.size(); ++larger) {
    const absl::Duration slow = Slow(larger, now);
    if (slow > absl::ZeroDuration()) return slow;
  }
  for (size_t smaller = size_class; smaller-- > 0;) {
    const absl::Duration slow = Slow(smaller, now);
    if (slow > absl::ZeroDuration()) {
      return slow * (int64_t{1} << (size_class - smaller));
    }
  }
  return absl::ZeroDuration();
}

}  // namespace engram
