#ifndef ENGRAM_CORE_CACHE_TRY_LOCK_H_
#define ENGRAM_CORE_CACHE_TRY_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

namespace engram {

// A lock that nobody waits for: who does not get it does without.
class ABSL_LOCKABLE TryLock {
 public:
  [[nodiscard]] bool Try() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    // Looking first leaves the line with its holder.
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_TRY_LOCK_H_
