#ifndef ENGRAM_TABLE_SERVER_REBALANCE_PACER_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_PACER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace engram {

// Slows work down to so many bytes a second and to a share of the time. Says
// how long to wait; waits are the caller's. The time before a piece of work
// began is not saved up for later pieces.
//
// Thread safety: all methods may be called concurrently. The bounds are for all
// callers together.
class Pacer {
 public:
  struct Options {
    uint64_t bytes_per_second = 0;  // 0: no bound
    // Of wall time that the callers' pieces take, added up: 0.25 is one caller
    // at work for a quarter of the time. 0: no bound.
    double time_share = 0;
  };

  // REQUIRES: time_share is finite and not below 0. `clock` must outlive this.
  Pacer(Options options, const Clock& clock);

  // How long the caller is to wait after a piece of so many bytes, at which it
  // worked for `took` until now.
  absl::Duration After(uint64_t bytes, absl::Duration took);

 private:
  const Options options_;
  const Clock& clock_;
  Mutex mutex_;
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // When all that was done until now is within the bound.
  absl::Time bytes_paid_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time time_paid_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_PACER_H_
