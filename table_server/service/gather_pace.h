#ifndef ENGRAM_TABLE_SERVER_SERVICE_GATHER_PACE_H_
#define ENGRAM_TABLE_SERVER_SERVICE_GATHER_PACE_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace engram {

// Foretells how long a gather takes, from those that ended lately: one that
// cannot be in time is better refused at once than given up half way.
//
// Gathers share the threads. So a gather takes its bytes, or its thread's share
// of all that was in flight when it came, whichever is more, times what a byte
// takes. Of that a low average is kept, which falls faster than it rises: a few
// callers that read slowly do not make all look slow, and what is foretold too
// short is only admitted in vain.
//
// Not synchronised.
class GatherPace {
 public:
  // One more thread gathers. Before any, one is assumed.
  void AddThread() { ++threads_; }

  // A gather of `bytes` took `time`. `in_flight_bytes`: of all in flight when
  // it came, with its own.
  void Took(uint64_t bytes, uint64_t in_flight_bytes, absl::Duration time);
  // Zero: nothing is known yet.
  absl::Duration Expected(uint64_t bytes, uint64_t in_flight_bytes) const;

 private:
  double Share(uint64_t bytes, uint64_t in_flight_bytes) const;

  size_t threads_ = 0;
  double ns_per_byte_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_GATHER_PACE_H_
