#ifndef ENGRAM_COMPUTE_WORKER_TABLES_WATCH_H_
#define ENGRAM_COMPUTE_WORKER_TABLES_WATCH_H_

#include <optional>

#include "absl/time/time.h"

namespace engram {

// Whether a worker can rely on its tables, from frequent looks whether every
// partition has a server: a hand-over, or a connection that breaks and is made
// again at once, is no reason to send callers elsewhere.
//
// Times are given, of one clock. Thread safety: none.
class TablesWatch {
 public:
  static constexpr absl::Duration kLostAfter = absl::Seconds(1);
  static constexpr absl::Duration kBackAfter = absl::Milliseconds(200);

  // One look. The verdict changes once all looks of kLostAfter or kBackAfter
  // have been against it; so one of each kind now and then changes nothing.
  void Observe(bool covered, absl::Time now);
  bool reliable() const { return reliable_; }

 private:
  bool reliable_ = true;  // at first
  std::optional<absl::Time> against_since_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_TABLES_WATCH_H_
