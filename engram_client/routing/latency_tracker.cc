#include "engram_client/routing/latency_tracker.h"

#include <cmath>

namespace engram {

size_t LatencyTracker::BucketOf(uint64_t us) {
  us = std::min(us, kMaxUs - 1);
  if (us < kSteps) return us;
  const int shift = std::bit_width(us) - std::bit_width(kSteps);
  return kSteps * static_cast<size_t>(shift) + (us >> shift);
}

uint64_t LatencyTracker::EndOf(size_t bucket) {
  if (bucket < kSteps) return bucket + 1;
  const size_t shift = bucket / kSteps - 1;
  return (bucket % kSteps + kSteps + 1) << shift;
}

size_t LatencyTracker::Turn(absl::Time now) {
  const int64_t period = absl::ToUnixMicros(now) / period_us_;
  int64_t last = period_.load(std::memory_order_relaxed);
  // Whoever begins the period empties what it will fill.
  while (last < period) {
    if (!period_.compare_exchange_weak(last, period)) continue;
    Clear(static_cast<size_t>(period & 1));
    if (period > last + 1) Clear(static_cast<size_t>(~period & 1));
    last = period;
  }
  return static_cast<size_t>(last & 1);
}

void LatencyTracker::Clear(size_t half) {
  for (Histogram& histogram : halves_[half]) {
    for (auto& count : histogram) count.store(0, std::memory_order_relaxed);
  }
}

void LatencyTracker::Record(size_t size_class, absl::Duration time,
                            absl::Time now) {
  const auto us =
      static_cast<uint64_t>(std::max<int64_t>(0, ToInt64Microseconds(time)));
  halves_[Turn(now)][size_class][BucketOf(us)].fetch_add(
      1, std::memory_order_relaxed);
}

uint64_t LatencyTracker::Count(size_t size_class, absl::Time now) {
  Turn(now);
  uint64_t count = 0;
  for (const auto& half : halves_) {
    for (const auto& bucket : half[size_class]) {
      count += bucket.load(std::memory_order_relaxed);
    }
  }
  return count;
}

absl::Duration LatencyTracker::Percentile(size_t size_class, double share,
                                          absl::Time now) {
  const auto rank = static_cast<uint64_t>(
      std::ceil(share * static_cast<double>(Count(size_class, now))));
  if (rank == 0) return absl::ZeroDuration();
  uint64_t count = 0;
  size_t last = 0;  // counts may have been taken away since
  for (size_t bucket = 0; bucket < kBuckets && count < rank; ++bucket) {
    for (const auto& half : halves_) {
      count += half[size_class][bucket].load(std::memory_order_relaxed);
    }
    last = bucket;
  }
  return absl::Microseconds(EndOf(last));
}

}  // namespace engram
