#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_HISTOGRAM_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace engram::ctl {

// Counts of durations in log-linear buckets, as HdrHistogram has them: 64 for
// each power of two nanoseconds. A quantile is off by at most 1/128 (0.8 %);
// count, least, greatest and mean are exact. Always 19 KiB, however many are
// recorded; what exceeds kMaxSeconds counts as that.
//
// Not synchronised.
class LatencyHistogram {
 public:
  static constexpr int64_t kMaxSeconds = 7200;

  LatencyHistogram();

  // A negative duration counts as 0.
  void Record(absl::Duration latency);
  void Merge(const LatencyHistogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  // 0 where nothing was recorded, as all below.
  absl::Duration min() const;
  absl::Duration max() const;
  absl::Duration mean() const;
  // The middle of the bucket that holds the recorded duration of rank
  // ceil(quantile * count), within min() and max(). REQUIRES: 0 .. 1.
  absl::Duration Quantile(double quantile) const;

  // Buckets with something in them, ascending: durations of [from, to).
  struct Bucket {
    absl::Duration from;
    absl::Duration to;
    uint64_t count = 0;
  };
  std::vector<Bucket> buckets() const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  int64_t min_ns_ = 0;
  int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_HISTOGRAM_H_
