#include "engram_client/ctl/load_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.h"

namespace engram::ctl {
namespace {

// Durations below 2^kLinearBits ns have a bucket each; above, that many share
// each power of two.
constexpr int kLinearBits = 6;
constexpr uint64_t kLinear = uint64_t{1} << kLinearBits;
constexpr int64_t kMaxNs = LatencyHistogram::kMaxSeconds * 1'000'000'000;

constexpr size_t BucketOf(uint64_t ns) {
  if (ns < kLinear) return ns;
  const int shift = std::bit_width(ns) - 1 - kLinearBits;
  return (static_cast<size_t>(shift) << kLinearBits) + (ns >> shift);
}

constexpr size_t kBuckets = BucketOf(kMaxNs) + 1;
static_assert(kBuckets * sizeof(uint64_t) <= 19 << 10);

int64_t FirstOf(size_t bucket) {
  if (bucket < kLinear) return static_cast<int64_t>(bucket);
  const size_t shift = (bucket >> kLinearBits) - 1;
  return static_cast<int64_t>((kLinear + bucket % kLinear) << shift);
}

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(kBuckets) {}

void LatencyHistogram::Record(absl::Duration latency) {
  const int64_t ns =
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(latency), 0, kMaxNs);
  min_ns_ = count_ == 0 ? ns : std::min(min_ns_, ns);
  max_ns_ = std::max(max_ns_, ns);
  sum_ns_ += static_cast<double>(ns);
  ++count_;
  ++counts_[BucketOf(ns)];
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
  count_ += other.count_;
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
}

void LatencyHistogram::Clear() {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = 0;
  min_ns_ = max_ns_ = 0;
  sum_ns_ = 0;
}

absl::Duration LatencyHistogram::min() const {
  return absl::Nanoseconds(min_ns_);
}

absl::Duration LatencyHistogram::max() const {
  return absl::Nanoseconds(max_ns_);
}

absl::Duration LatencyHistogram::mean() const {
  if (count_ == 0) return absl::ZeroDuration();
  return absl::Nanoseconds(sum_ns_ / static_cast<double>(count_));
}

absl::Duration LatencyHistogram::Quantile(double quantile) const {
  ENGRAM_CHECK(quantile >= 0 && quantile <= 1);
  if (count_ == 0) return absl::ZeroDuration();
  const auto rank = std::clamp<uint64_t>(
      static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count_))),
      1, count_);
  if (rank == count_) return max();
  uint64_t below = 0;
  size_t bucket = 0;
  while (below + counts_[bucket] < rank) below += counts_[bucket++];
  const int64_t middle = (FirstOf(bucket) + FirstOf(bucket + 1) - 1) / 2;
  return absl::Nanoseconds(std::clamp(middle, min_ns_, max_ns_));
}

std::vector<LatencyHistogram::Bucket> LatencyHistogram::buckets() const {
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (counts_[i] == 0) continue;
    buckets.push_back({absl::Nanoseconds(FirstOf(i)),
                       absl::Nanoseconds(FirstOf(i + 1)), counts_[i]});
  }
  return buckets;
}

}  // namespace engram::ctl
