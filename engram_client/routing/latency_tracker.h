#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_LATENCY_TRACKER_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_LATENCY_TRACKER_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace engram {

// How long calls took lately, by their size: histograms with buckets an eighth
// of a power of two wide. Two per class alternate: one fills for `period`, the
// other is what was before. So answers are about the last one to two periods.
//
// Statistics, not accounts: what is recorded while a histogram is emptied may
// be lost. No memory is allocated after construction.
//
// Thread safety: all methods may be called concurrently; none locks.
class LatencyTracker {
 public:
  // Sizes of a class differ by less than a factor of two. The last has all
  // that is larger.
  static constexpr size_t kClasses = 18;
  static size_t ClassOf(uint64_t rows) {
    return std::min<size_t>(std::bit_width(rows), kClasses - 1);
  }

  explicit LatencyTracker(absl::Duration period = absl::Seconds(5))
      : period_us_(absl::ToInt64Microseconds(period)) {}
  LatencyTracker(const LatencyTracker&) = delete;
  LatencyTracker& operator=(const LatencyTracker&) = delete;

  // `now`: of one clock for all methods. REQUIRES: size_class < kClasses.
  void Record(size_t size_class, absl::Duration time, absl::Time now);
  uint64_t Count(size_t size_class, absl::Time now);
  // No more than `share` of the calls took longer, by at most an eighth; zero
  // where there were none. REQUIRES: 0 < share <= 1.
  absl::Duration Percentile(size_t size_class, double share, absl::Time now);

 private:
  static constexpr uint64_t kSteps = 8;  // buckets of a power of two
  static constexpr uint64_t kMaxUs = uint64_t{1} << 27;  // two minutes
  static constexpr size_t kBuckets = 200;
  using Histogram = std::array<std::atomic<uint32_t>, kBuckets>;

  static size_t BucketOf(uint64_t us);
  static uint64_t EndOf(size_t bucket);  // in microseconds
  // Which of a class's histograms fills now.
  size_t Turn(absl::Time now);
  void Clear(size_t half);

  const int64_t period_us_;
  std::atomic<int64_t> period_{0};  // the number of the one under way
  std::array<std::array<Histogram, kClasses>, 2> halves_{};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_LATENCY_TRACKER_H_
