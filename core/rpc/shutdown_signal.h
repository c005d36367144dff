#ifndef ENGRAM_CORE_RPC_SHUTDOWN_SIGNAL_H_
#define ENGRAM_CORE_RPC_SHUTDOWN_SIGNAL_H_

#include <atomic>

#include "absl/time/time.h"

namespace engram {

// SIGTERM and SIGINT as something to wait for. Create it first thing in main,
// before any thread starts: it blocks both signals for the threads to come,
// and ignores SIGPIPE.
class ShutdownSignal {
 public:
  ShutdownSignal();
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Returns true once a signal has come, false at `deadline`.
  bool WaitUntil(absl::Time deadline) const;

  // SIGTERM or SIGINT; the former if both have come. REQUIRES: one has.
  int number() const;

  // From now on the next signal ends the process at once, as signals do.
  // REQUIRES: one has come; called on a thread that goes on for a while.
  void EndAtTheNext();

 private:
  int fd_;
  std::atomic<bool> came_{false};
  std::atomic<int> number_{0};  // once it is not pending any more
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_SHUTDOWN_SIGNAL_H_
