#ifndef ENGRAM_TESTS_GPU_CHECK_WATCHDOG_H_
#define ENGRAM_TESTS_GPU_CHECK_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram::gpu_check {

// Bounds every wait of the program: a kernel that never ends blocks the thread
// that waits for it inside the driver, and nothing but ending the process gets
// it out of there.
//
// Thread safety: Arm and Disarm are one thread's.
class Watchdog {
 public:
  // `on_expiry` is called at most once, on the watchdog's thread, with what
  // was being done and the limit that it passed.
  using OnExpiry = std::function<void(const std::string&, absl::Duration)>;
  explicit Watchdog(OnExpiry on_expiry);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From now on `what` may take `limit`.
  void Arm(absl::string_view what, absl::Duration limit);
  void Disarm();

 private:
  void Watch();

  const OnExpiry on_expiry_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  absl::Duration limit_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  // On a clock that nobody sets; none: nothing is under way.
  std::optional<std::chrono::steady_clock::time_point> expiry_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_WATCHDOG_H_
