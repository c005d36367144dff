#include "tests/gpu/check/watchdog.h"

#include <algorithm>
#include <utility>

namespace engram::gpu_check {

Watchdog::Watchdog(OnExpiry on_expiry)
    : on_expiry_(std::move(on_expiry)), thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Watchdog::Arm(absl::string_view what, absl::Duration limit) {
  MutexLock lock(&mutex_);
  what_ = std::string(what);
  limit_ = limit;
  // A limit of years would overflow the clock.
  expiry_ = std::chrono::steady_clock::now() +
            absl::ToChronoNanoseconds(std::min(limit, absl::Hours(24)));
  changed_.NotifyAll();
}

void Watchdog::Disarm() {
  MutexLock lock(&mutex_);
  expiry_.reset();
}

void Watchdog::Watch() {
  std::string what;
  absl::Duration limit;
  {
    MutexLock lock(&mutex_);
    while (!stopping_) {
      if (!expiry_) {
        changed_.Wait(&mutex_);
        continue;
      }
      const auto left = *expiry_ - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      changed_.WaitFor(&mutex_, absl::FromChrono(left));
    }
    if (stopping_) return;
    what = what_;
    limit = limit_;
  }
  on_expiry_(what, limit);
}

}  // namespace engram::gpu_check
