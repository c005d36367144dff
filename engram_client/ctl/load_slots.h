#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SLOTS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SLOTS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/mutex.h"

namespace engram::ctl {

// The slots that calls go through: free, taken, or queued for a check thread
// and then taken by it. No memory is allocated after the start.
//
// Thread safety: all methods may be called concurrently.
class LoadSlots {
 public:
  explicit LoadSlots(size_t count);

  // The slot that was freed last, which the caches still know. REQUIRES: one
  // is free.
  size_t Take();
  void Free(size_t slot);

  // For a check thread, in the order queued. Does not block.
  void QueueCheck(size_t slot);
  // Waits for one; nothing once Close was called and none is queued.
  std::optional<size_t> NextToCheck();
  void Close();

  void WaitUntilAllFree();

 private:
  Mutex mutex_;
  CondVar queued_;
  CondVar freed_;
  std::vector<size_t> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> ring_ ABSL_GUARDED_BY(mutex_);  // queued ones
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for one
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SLOTS_H_
