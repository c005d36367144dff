#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SCHEDULE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "engram_client/ctl/load_random.h"
#include "engram_client/ctl/load_sizes.h"

namespace engram::ctl {

enum class Arrivals {
  kPoisson,  // gaps drawn from the exponential distribution, as independent
             // callers make them
  kEven,     // one gap, always
};

// A call as the schedule has it, before anything is known of its answer.
struct LoadCall {
  absl::Duration when;    // after the start
  size_t size_index = 0;  // of the mix
  uint64_t seed = 0;      // all that is drawn for its content follows from it
};

// When calls come, and of which size: fixed by the options alone, whatever the
// answers do and whoever asks.
//
// Not synchronised.
class LoadSchedule {
 public:
  struct Options {
    Arrivals arrivals = Arrivals::kPoisson;
    double calls_per_second = 0;  // above 0
    std::vector<LoadSize> sizes;  // at least one
    absl::Duration end;           // no call comes at it or later
    uint64_t seed = 1;
  };

  explicit LoadSchedule(const Options& options);

  // The next call; nothing once the end is reached.
  std::optional<LoadCall> Next();

 private:
  absl::Duration NextTime();
  size_t DrawSize();

  const Options options_;
  const uint64_t weight_sum_;
  LoadRandom random_;
  uint64_t calls_ = 0;
  double seconds_ = 0;  // of the last call
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SCHEDULE_H_
