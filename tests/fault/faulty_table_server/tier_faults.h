#ifndef ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_TIER_FAULTS_H_
#define ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_TIER_FAULTS_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "tests/fault/command.h"

namespace engram::fault {

// The faults of a tier, switched while it serves:
//   flip SHARE            one bit of this share of rows is turned
//   slow FACTOR           rows take so many times as long, and never less than
//                         kLeastSlowTime * FACTOR a piece of a gather
//   fail SHARE CODE       this share of pieces fails, e.g. fail 0.5 INTERNAL
//   capacity ROWS_PER_S   no more rows than that, all threads together; 0: no
//                         limit
//   fetch_fail SHARE CODE this share of fetches of rows that are not in memory
//                         fails
//   fetch_slow FACTOR     they take so many times as long, as slow has it
//   clear                 none of these
//
// Thread safety: all methods may be called concurrently.
class TierFaults {
 public:
  // What a healthy server takes for a piece of a small gather, about.
  static constexpr absl::Duration kLeastSlowTime = absl::Microseconds(100);

  explicit TierFaults(uint64_t seed) : random_(seed) {}

  // Answers "" or why not. NOT_FOUND, INVALID_ARGUMENT: nothing is changed.
  absl::StatusOr<std::string> Obey(const Command& command);

  // What is to happen to one piece of a gather.
  struct Plan {
    absl::Status failure;
    double slow_factor = 1;
    double flip_share = 0;
    uint64_t seed = 0;      // of the piece's flips
    absl::Time earliest;    // the capacity allows no end before it
    uint64_t switches = 0;  // how often faults had been switched
  };
  Plan Next(size_t rows, absl::Time now);
  // What is to happen to a fetch: failure, slow_factor, switches.
  Plan NextFetch();

  // Waits for `until`, or until the faults are switched once more than
  // `switches`.
  void WaitUntil(absl::Time until, uint64_t switches);

 private:
  struct Settings {
    double flip_share = 0;
    uint64_t slow_factor = 1;
    double fail_share = 0;
    absl::StatusCode fail_code = absl::StatusCode::kUnavailable;
    uint64_t rows_per_s = 0;
    uint64_t fetch_slow_factor = 1;
    double fetch_fail_share = 0;
    absl::StatusCode fetch_fail_code = absl::StatusCode::kUnavailable;
  };

  static absl::Status Change(const Command& command, Settings& settings);

  Mutex mutex_;
  CondVar switched_;
  Settings settings_ ABSL_GUARDED_BY(mutex_);
  uint64_t switches_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time busy_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_TIER_FAULTS_H_
