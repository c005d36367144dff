#ifndef ENGRAM_TABLE_SERVER_SERVICE_STALL_WATCH_H_
#define ENGRAM_TABLE_SERVER_SERVICE_STALL_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace engram {

// When something was last sent on a stream. Thread safety: both may be called
// concurrently.
class StallWatch {
 public:
  explicit StallWatch(absl::Time now) : moved_at_ns_(absl::ToUnixNanos(now)) {}

  void Moved(absl::Time now) { moved_at_ns_.store(absl::ToUnixNanos(now)); }
  bool IsStalled(absl::Time now, absl::Duration limit) const {
    return now - absl::FromUnixNanos(moved_at_ns_.load()) > limit;
  }

 private:
  std::atomic<int64_t> moved_at_ns_;  // Unix time
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_STALL_WATCH_H_
