#ifndef ENGRAM_CORE_BASE_CLOCK_H_
#define ENGRAM_CORE_BASE_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// Where code that decides by time takes it from, so that tests can set it.
// Thread safety: all methods may be called concurrently.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The machine's clock; never destroyed.
  static const Clock& Real();
  // Begins as the machine's clock and goes on evenly, whoever sets that; never
  // destroyed.
  static const Clock& Steady();
};

// A clock that moves only when told to.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time now) : now_(now) {}

  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_CLOCK_H_
