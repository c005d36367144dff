#include "core/rpc/shutdown_signal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "absl/time/clock.h"
#include "core/base/check.h"

namespace engram {

ShutdownSignal::ShutdownSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ENGRAM_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  std::signal(SIGPIPE, SIG_IGN);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  ENGRAM_CHECK(fd_ >= 0);
}

ShutdownSignal::~ShutdownSignal() { close(fd_); }

bool ShutdownSignal::WaitUntil(absl::Time deadline) const {
  constexpr int64_t kMaxPollMs = 60000;
  while (true) {
    const absl::Duration left =
        std::max(deadline - absl::Now(), absl::ZeroDuration());
    const int64_t left_ms = absl::ToInt64Milliseconds(std::min(
        left + absl::Microseconds(999), absl::Milliseconds(kMaxPollMs)));
    pollfd entry{fd_, POLLIN, 0};
    const int count = poll(&entry, 1, static_cast<int>(left_ms));
    // The signal stays unread, so that every later wait sees it too.
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (absl::Now() >= deadline) return false;
  }
}

}  // namespace engram
