#ifndef ENGRAM_COMPUTE_WORKER_FAIR_SHARE_H_
#define ENGRAM_COMPUTE_WORKER_FAIR_SHARE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "compute/worker/caller_id.h"

namespace engram {

// One bound of a worker, divided between callers so that one more can always
// begin.
//
// Who holds nothing gets whatever fits. Who holds something gets more if it
// then has at most kTimesFree times what is then left. So a caller that is
// alone may have 3/4 of the bound; N callers that take what they can get come
// to 3 / (3N + 1) each, and 1 / (3N + 1) stays for the next one. Whoever has
// more, from a time when they were fewer, is refused until it has less: nothing
// is taken away.
//
// Thread safety: none.
class FairShare {
 public:
  static constexpr uint64_t kTimesFree = 3;

  enum class Verdict {
    kTaken,
    kFull,        // there is less left
    kAboveShare,  // it would fit, but is kept for others
  };

  explicit FairShare(uint64_t limit) : limit_(limit) {}

  // The rule: a caller that holds `held` of the `used` asks for `amount`.
  static Verdict Judge(uint64_t held, uint64_t amount, uint64_t used,
                       uint64_t limit);
  // The bound of which one caller can have `amount` bit by bit.
  static uint64_t LimitFor(uint64_t amount);

  // Unless kTaken, nothing has changed.
  Verdict Take(const CallerId& caller, uint64_t amount);
  // REQUIRES: the caller holds it.
  void Give(const CallerId& caller, uint64_t amount);

  uint64_t HeldBy(const CallerId& caller) const;
  uint64_t used() const { return used_; }
  uint64_t limit() const { return limit_; }
  // Those that hold something.
  size_t callers() const { return held_.size(); }

 private:
  const uint64_t limit_;
  uint64_t used_ = 0;
  std::unordered_map<CallerId, uint64_t, CallerId::Hash> held_;  // no zeros
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_FAIR_SHARE_H_
