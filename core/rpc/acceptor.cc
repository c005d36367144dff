#include "core/rpc/acceptor.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/rpc/metric_families.h"

namespace engram {
namespace {

// After a failure that the next try would have too.
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(10);
constexpr absl::Duration kReportEvery = absl::Seconds(10);

// Of one connection, which is gone: the next one is taken at once.
bool IsOfTheConnection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EPERM ||
         error == EINTR;
}

}  // namespace

Acceptor::Metrics::Metrics(prometheus::Registry& registry)
    : accepted(AddCounter(registry, "engram_rpc_connections_accepted_total",
                          "Connections that were accepted.")),
      refused(AddCounter(registry, "engram_rpc_connections_refused_total",
                         "Connections closed at once, too many files being "
                         "open.")),
      failures(AddCounter(registry, "engram_rpc_accept_failures_total",
                          "Times that the kernel could not accept one, for "
                          "want of files or memory.")),
      max_file(AddGauge(registry, "engram_rpc_connections_file_limit",
                        "Open files from which on connections are refused.")) {}

int Acceptor::LimitOfFiles() {
  rlimit limit;
  ENGRAM_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t files = std::min<rlim_t>(limit.rlim_cur, INT_MAX);
  return static_cast<int>(files - files / 16);
}

Acceptor::Pace::Pace(uint32_t burst, double per_second)
    : burst_(burst),
      per_second_(per_second),
      tokens_(burst),
      filled_(absl::Now()) {}

absl::Duration Acceptor::Pace::Wait(absl::Time now) {
  const absl::Duration passed = std::max(now - filled_, absl::ZeroDuration());
  filled_ = now;
  tokens_ =
      std::min(burst_, tokens_ + per_second_ * absl::ToDoubleSeconds(passed));
  return tokens_ >= 1 ? absl::ZeroDuration()
                      : absl::Seconds((1 - tokens_) / per_second_);
}

Acceptor::Acceptor(std::unique_ptr<ListeningSockets> sockets,
                   const Options& options, Metrics& metrics, Take take)
    : sockets_(std::move(sockets)),
      max_file_(options.max_file > 0 ? options.max_file : LimitOfFiles()),
      metrics_(metrics),
      take_(std::move(take)),
      pace_(options.burst, options.per_second),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENGRAM_CHECK(stop_event_ >= 0);
  metrics_.max_file.Set(max_file_);
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  ENGRAM_CHECK(write(stop_event_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  close(stop_event_);
  sockets_.reset();
}

void Acceptor::Run() {
  absl::Duration pause;
  while (Await(pause)) pause = AcceptSome();
}

bool Acceptor::Await(absl::Duration pause) const {
  std::vector<pollfd> files = {{stop_event_, POLLIN, 0}};
  int timeout_ms = -1;
  if (pause > absl::ZeroDuration()) {
    timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(
        absl::Ceil(std::min(pause, kLongestPause), absl::Milliseconds(1))));
  } else {
    for (const int fd : sockets_->fds()) files.push_back({fd, POLLIN, 0});
  }
  poll(files.data(), files.size(), timeout_ms);
  return files[0].revents == 0;
}

absl::Duration Acceptor::AcceptSome() {
  for (const int listener : sockets_->fds()) {
    while (true) {
      const absl::Duration wait = pace_.Wait(absl::Now());
      if (wait > absl::ZeroDuration()) return wait;
      const int fd =
          accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        pace_.Count();
        HandOver(fd);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (!IsOfTheConnection(errno)) {
        metrics_.failures.Increment();
        Report(absl::StrCat("a connection could not be accepted: ",
                            std::strerror(errno)));
        return kPause;
      }
    }
  }
  return absl::ZeroDuration();
}

void Acceptor::HandOver(int fd) {
  if (fd >= max_file_) {
    close(fd);
    metrics_.refused.Increment();
    Report(absl::StrCat("connections are refused: ", max_file_,
                        " files are open"));
    return;
  }
  metrics_.accepted.Increment();
  take_(fd);
}

void Acceptor::Report(const std::string& what) {
  const absl::Time now = absl::Now();
  if (now < next_report_) return;
  next_report_ = now + kReportEvery;
  spdlog::warn("{}: {}", sockets_->address(), what);
}

}  // namespace engram
