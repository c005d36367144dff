#ifndef ENGRAM_TABLE_SERVER_GATHER_CALL_GUARD_H_
#define ENGRAM_TABLE_SERVER_GATHER_CALL_GUARD_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace engram {

// Whether anybody still waits for a call. Asked before its work starts and
// every few thousand rows, so that a call without a caller costs nothing.
class CallGuard {
 public:
  // `cancelled` and `clock` must outlive the guard.
  CallGuard(absl::Time deadline, const std::atomic<bool>& cancelled,
            const Clock& clock)
      : deadline_(deadline), cancelled_(cancelled), clock_(clock) {}

  // CANCELLED or DEADLINE_EXCEEDED once the caller is gone.
  absl::Status Check() const;

 private:
  const absl::Time deadline_;
  const std::atomic<bool>& cancelled_;
  const Clock& clock_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_CALL_GUARD_H_
