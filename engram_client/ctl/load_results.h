#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RESULTS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RESULTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engram_client/ctl/load_histogram.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

// Calls of one size, or of all.
struct LoadCounts {
  uint64_t calls = 0;     // sent
  uint64_t ok = 0;        // and, as far as it was checked, right
  uint64_t failed = 0;    // ended with an error
  uint64_t wrong = 0;     // ended well, with another content
  uint64_t not_sent = 0;  // too many were in flight when they came
  uint64_t units = 0;     // rows or tokens of those that were ok
  uint64_t bytes = 0;     // of them
  uint64_t units_checked = 0;
  uint64_t server_calls = 0;
  uint64_t wire_bytes = 0;
  LatencyHistogram latency;  // of those that were ok, from the scheduled time

  void Add(const LoadCounts& other);
};

// Calls that failed in one way.
struct LoadFailure {
  std::string code;    // "DEADLINE_EXCEEDED"
  std::string reason;  // "OVERLOADED"; empty: none
  uint64_t count = 0;
  std::string first_message;
  LatencyHistogram latency;
};

// What happened in about one second, warm-up included.
struct LoadSecond {
  double from_seconds = 0;  // after the end of the warm-up; below 0: before it
  double seconds = 0;       // how long it was
  uint64_t sent = 0;
  uint64_t ok = 0;  // that ended in it
  uint64_t failed = 0;
  uint64_t not_sent = 0;
  uint64_t in_flight = 0;  // at its end
  // Of the calls that ended well in it.
  absl::Duration p50;
  absl::Duration p99;
  absl::Duration max;
};

// A run. All but `seconds`, `warmup_*` and `mismatch` leaves the warm-up out.
struct LoadResults {
  std::vector<LoadCounts> sizes;  // in the order of the mix
  std::vector<LoadFailure> failures;
  std::vector<LoadSecond> seconds;
  LatencyHistogram send_delay;  // from the scheduled time until it was sent
  // The longest that a call ended after its deadline.
  absl::Duration deadline_overrun;
  // Of not_sent: when half or more of those in flight had an answer that was
  // not checked yet.
  uint64_t not_sent_for_checks = 0;

  uint64_t warmup_calls = 0;
  uint64_t warmup_failed = 0;
  uint64_t warmup_not_sent = 0;

  double measured_seconds = 0;
  bool interrupted = false;
  uint64_t unfinished = 0;  // calls that had not ended when the run did
  std::optional<LoadMismatch> mismatch;  // ended the run
  absl::Status error;                    // ended the run

  LoadCounts Sum() const;
};

// 0: nothing failed; 2: something did, or did not end; 3: wrong content.
int LoadExitCode(const LoadResults& results);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RESULTS_H_
