#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_CALL_TIMES_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_CALL_TIMES_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "engram_client/routing/latency_tracker.h"

namespace engram {

// What calls of each size usually take, and from when on one of them is slow.
// Cheap enough to be asked for each call: looks at the tracker's histograms
// now and then.
//
// Thread safety: all methods may be called concurrently; none locks.
class CallTimes {
 public:
  struct Options {
    // A call that takes longer than this share of its size is hedged. Above
    // 1 - the budget's share: so healthy servers leave the budget full, for
    // the ones that are not.
    double slow_percentile = 0.97;
    double slow_factor = 1;  // times that percentile
    // Calls of a size, before their percentiles count. Until then those of
    // larger calls do, or in proportion those of smaller ones.
    uint64_t min_calls = 50;
    // While no size is known, and at most for a size that is not.
    absl::Duration first_hedge_delay = absl::Milliseconds(50);
    absl::Duration shortest_hedge_delay = absl::Milliseconds(1);
    absl::Duration refresh_period = absl::Milliseconds(100);
    absl::Duration period = absl::Seconds(5);  // as LatencyTracker has it
  };

  explicit CallTimes(const Options& options)
      : options_(options), tracker_(options.period) {}

  // A call of `rows` rows took `time`. `now`: of one clock for all methods.
  void Record(uint64_t rows, absl::Duration time, absl::Time now);
  // The median; zero while too few calls are known.
  absl::Duration Usual(uint64_t rows, absl::Time now);
  // How long such a call may take before it is hedged.
  absl::Duration HedgeDelay(uint64_t rows, absl::Time now);

 private:
  struct Class {
    std::atomic<int64_t> refresh_at_us{0};
    std::atomic<int64_t> usual_us{0};  // 0: not known
    std::atomic<int64_t> slow_us{0};   // likewise
  };
  // Of its last look.
  const Class& ClassOf(uint64_t rows, absl::Time now);
  void Look(size_t size_class, absl::Time now);
  // From when on a call is slow; zero while too few are known.
  absl::Duration Slow(size_t size_class, absl::Time now) {
    return options_.slow_factor *
           Percentile(size_class, options_.slow_percentile, now);
  }
  // The share's percentile; zero while too few calls are known.
  absl::Duration Percentile(size_t size_class, double share, absl::Time now);
  // What the nearest sizes let expect; zero where nothing is known.
  absl::Duration SlowLikeOthers(size_t size_class, absl::Time now);

  const Options options_;
  LatencyTracker tracker_;
  std::array<Class, LatencyTracker::kClasses> classes_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_CALL_TIMES_H_
