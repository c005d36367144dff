#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_CONNECTION_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_CONNECTION_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "absl/time/clock.h"
#include "core/base/mutex.h"

namespace engram {

// Tests of what goes on at each change of the routing and each answer, of
// which Signal is told.
class ConnectionFixture : public ::testing::Test {
 protected:
  void Signal() {
    MutexLock lock(&mutex_);
    ++events_;
    changed_.NotifyAll();
  }
  // Looks at it again after each signal.
  [[nodiscard]] bool Eventually(const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (true) {
      uint64_t seen = 0;
      {
        MutexLock lock(&mutex_);
        seen = events_;
      }
      if (holds()) return true;
      MutexLock lock(&mutex_);
      while (events_ == seen) {
        if (!changed_.WaitUntil(&mutex_, deadline)) return false;
      }
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_CONNECTION_FIXTURE_H_
