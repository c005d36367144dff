#ifndef ENGRAM_CORE_BASE_NOTIFICATION_H_
#define ENGRAM_CORE_BASE_NOTIFICATION_H_

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// A one-way flag to wait for. Thread safety: all methods may be called
// concurrently; destroy it only after Notify has returned.
class Notification {
 public:
  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
    condition_.NotifyAll();
  }

  bool HasBeenNotified() const {
    MutexLock lock(&mutex_);
    return notified_;
  }

  // Returns whether the flag was set before `deadline`.
  bool WaitUntil(absl::Time deadline) const {
    MutexLock lock(&mutex_);
    while (!notified_) {
      if (!condition_.WaitUntil(&mutex_, deadline)) return notified_;
    }
    return true;
  }

  void Wait() const { WaitUntil(absl::InfiniteFuture()); }

 private:
  mutable Mutex mutex_;
  mutable CondVar condition_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_NOTIFICATION_H_
