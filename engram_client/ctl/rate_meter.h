#ifndef ENGRAM_ENGRAM_CLIENT_CTL_RATE_METER_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_RATE_METER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace engram::ctl {

// How fast a counter grows, over the last ten seconds that it was looked at.
class RateMeter {
 public:
  // One that shrinks has started anew.
  void Add(absl::Time now, uint64_t count);

  // None before two looks.
  std::optional<double> per_second() const;
  // Until it has grown by `more`; none if it does not grow.
  std::optional<absl::Duration> TimeFor(uint64_t more) const;

 private:
  std::deque<std::pair<absl::Time, uint64_t>> looks_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_RATE_METER_H_
