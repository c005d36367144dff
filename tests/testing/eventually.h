#ifndef ENGRAM_TESTS_TESTING_EVENTUALLY_H_
#define ENGRAM_TESTS_TESTING_EVENTUALLY_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram::test {

// Long enough for a loaded machine; no test waits for it to pass.
inline absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// Waits for what nothing announces; false when it does not come true.
[[nodiscard]] inline bool Eventually(const std::function<bool()>& holds) {
  Mutex mutex;
  CondVar never;
  for (const absl::Time deadline = Soon(); absl::Now() < deadline;) {
    if (holds()) return true;
    MutexLock lock(&mutex);
    never.WaitFor(&mutex, absl::Milliseconds(1));
  }
  return holds();
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_EVENTUALLY_H_
