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

namespace {

sigset_t ShutdownSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t signals = ShutdownSignals();
  ENGRAM_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  std::signal(SIGPIPE, SIG_IGN);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  ENGRAM_CHECK(fd_ >= 0);
}

ShutdownSignal::~ShutdownSignal() { close(fd_); }

bool ShutdownSignal::WaitUntil(absl::Time deadline) const {
  constexpr int64_t kMaxPollMs = 60000;
  if (came_.load()) return true;
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

int ShutdownSignal::number() const {
  if (const int number = number_.load(); number != 0) return number;
  sigset_t pending;
  ENGRAM_CHECK(sigpending(&pending) == 0);
  return sigismember(&pending, SIGTERM) == 1 ? SIGTERM : SIGINT;
}

void ShutdownSignal::EndAtTheNext() {
  number_.store(number());
  came_.store(true);
  // What has come is pending until it is read, and would end the process.
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) > 0) {
  }
  const sigset_t signals = ShutdownSignals();
  ENGRAM_CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, nullptr) == 0);
}

}  // namespace engram
