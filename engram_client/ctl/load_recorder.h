#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RECORDER_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/ctl/load_results.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

// Adds up what happens to calls. Its memory does not grow with their number:
// a histogram for each size and kind of failure, a line for each second.
//
// Thread safety: all methods may be called concurrently; a call takes a lock
// for some tens of nanoseconds.
class LoadRecorder {
 public:
  // Kinds of failure with counts of their own; the rest is one more.
  static constexpr size_t kMaxFailures = 32;

  // Which call: its place in the mix, and whether it comes after the warm-up.
  struct Which {
    size_t size_index = 0;
    bool measured = true;
  };

  // `start_seconds`: of the first second, as LoadSecond.from_seconds.
  LoadRecorder(size_t sizes, double start_seconds);

  void Sent(Which which, absl::Duration delay);
  void NotSent(Which which, bool checks_are_behind);
  struct Times {
    absl::Duration latency;  // from the scheduled time
    absl::Duration overrun;  // after the deadline; negative: before it
  };
  void Ended(Which which, const Times& times, const absl::Status& status,
             const LoadAnswer& answer);

  // Whether anything has happened in the second that is going on.
  bool in_second() const;
  // Ends the second that is going on at `now`, again as from_seconds.
  LoadSecond Cut(double now, uint64_t in_flight);
  // So far; counts and seconds.
  LoadResults results() const;

 private:
  // In which way a call failed.
  struct Kind {
    std::string code;
    std::string reason;
  };
  static Kind KindOf(const absl::Status& status);
  LoadFailure& FailureOf(Kind kind, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  LoadResults results_ ABSL_GUARDED_BY(mutex_);
  LoadSecond second_ ABSL_GUARDED_BY(mutex_);  // that is going on
  LatencyHistogram second_latency_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RECORDER_H_
