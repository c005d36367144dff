#include "tests/fault/tcp_proxy/proxy.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram::fault {
namespace {

// Tags of epoll: a link's id twice, plus its side; ids begin with 1.
constexpr uint64_t kListenerTag = 0;
constexpr uint64_t kStdinTag = 1;
constexpr size_t kMaxCommandBytes = 4096;
constexpr int kAcceptsAtATime = 64;
constexpr std::array<Link::Side, 2> kSides = {Link::Side::kClient,
                                              Link::Side::kServer};

uint64_t TagOf(uint64_t link_id, Link::Side side) {
  return 2 * link_id + static_cast<uint64_t>(side);
}

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Proxy>> Proxy::Create(Options options) {
  ENGRAM_ASSIGN_OR_RETURN(const Endpoint to, Endpoint::Parse(options.to));
  ENGRAM_ASSIGN_OR_RETURN(Listener listener, Listener::Bind());
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("epoll_create1");
  std::unique_ptr<Proxy> proxy(
      new Proxy(std::move(options), to, std::move(listener), std::move(epoll)));
  ENGRAM_RETURN_IF_ERROR(proxy->Watch(proxy->listener_.fd.get(), kListenerTag));
  ENGRAM_RETURN_IF_ERROR(proxy->Watch(STDIN_FILENO, kStdinTag));
  return proxy;
}

Proxy::Proxy(Options options, Endpoint to, Listener listener, Fd epoll)
    : options_(std::move(options)),
      to_(to),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      random_(options_.seed) {}

absl::Status Proxy::Watch(int fd, uint64_t tag) {
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = tag}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(absl::StrCat("epoll_ctl of file descriptor ", fd));
}

absl::Status Proxy::Run() {
  std::array<epoll_event, 256> events;
  while (true) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                   WaitMs(Steady::now()));
    if (count < 0 && errno != EINTR) return ErrnoStatus("epoll_wait");
    const Steady::time_point now = Steady::now();
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kListenerTag) {
        Accept();
      } else if (tag == kStdinTag) {
        if (!ReadCommands()) return absl::OkStatus();
      } else if (const auto link = links_.find(tag / 2); link != links_.end()) {
        Pump(link, now);
      }
    }
    ResetSome(now);
    PumpDue(now);
  }
}

int Proxy::WaitMs(Steady::time_point now) const {
  std::optional<Steady::time_point> next = next_reset_;
  for (const auto& [id, watched] : links_) {
    const auto due = watched.link.NextPump(faults_);
    if (due.has_value() && (!next.has_value() || *due < *next)) next = due;
  }
  if (!next.has_value()) return -1;
  // Rounded up: what is not yet due would be waited for in a busy loop.
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<int64_t>(wait, 0, 60'000));
}

void Proxy::Accept() {
  for (int i = 0; i < kAcceptsAtATime; ++i) {
    Fd client(accept4(listener_.fd.get(), nullptr, nullptr,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.valid()) return;
    ++counts_.accepted;
    absl::StatusOr<Fd> server = links_.size() < options_.max_connections
                                    ? to_.Connect()
                                    : absl::ResourceExhaustedError("full");
    if (!server.ok()) {
      ++counts_.refused;
      client.Reset();
      continue;
    }
    const auto [link, added] = links_.emplace(
        next_link_id_++,
        Watched{.link = Link(std::move(client), *std::move(server))});
    Pump(link, Steady::now());
  }
}

bool Proxy::ReadCommands() {
  char buffer[kMaxCommandBytes];
  const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  if (size == 0) return false;
  command_bytes_.append(buffer, static_cast<size_t>(size));
  for (size_t end = command_bytes_.find('\n'); end != std::string::npos;
       end = command_bytes_.find('\n')) {
    PrintLine(AnswerTo(Obey(command_bytes_.substr(0, end))));
    command_bytes_.erase(0, end + 1);
  }
  return command_bytes_.size() <= kMaxCommandBytes;
}

absl::StatusOr<std::string> Proxy::Obey(const std::string& line) {
  const Command command(line);
  const std::string& name = command.name();
  if (name == "stats") return Stats();
  if (name == "reset" || name == "close") {
    EndAll(/*with_reset=*/name == "reset");
  } else if (name == "half_open") {
    FreezeAll();
  } else {
    ENGRAM_RETURN_IF_ERROR(Apply(command, faults_));
    next_reset_.reset();
    if (faults_.reset_share > 0) {
      next_reset_ = Steady::now() + faults_.reset_every;
    }
    PumpAll();
  }
  return std::string();
}

void Proxy::PumpAll() {
  const Steady::time_point now = Steady::now();
  for (auto link = links_.begin(); link != links_.end();) {
    link = Pump(link, now);
  }
}

void Proxy::PumpDue(Steady::time_point now) {
  for (auto link = links_.begin(); link != links_.end();) {
    const auto due = link->second.link.NextPump(faults_);
    link = due.has_value() && *due <= now ? Pump(link, now) : std::next(link);
  }
}

// Returns the link after it.
Proxy::Links::iterator Proxy::Pump(Links::iterator link,
                                   Steady::time_point now) {
  if (!link->second.link.Pump(faults_, now, random_, counts_)) {
    return links_.erase(link);
  }
  UpdateWatch(link->first, link->second);
  return std::next(link);
}

void Proxy::UpdateWatch(uint64_t id, Watched& watched) {
  for (const Link::Side side : kSides) {
    uint32_t& watches = watched.events[static_cast<size_t>(side)];
    const uint32_t wanted = watched.link.Interest(side, faults_);
    if (wanted == watches) continue;
    epoll_event event = {.events = wanted, .data = {.u64 = TagOf(id, side)}};
    const int change = watches == 0  ? EPOLL_CTL_ADD
                       : wanted == 0 ? EPOLL_CTL_DEL
                                     : EPOLL_CTL_MOD;
    epoll_ctl(epoll_.get(), change, watched.link.fd(side), &event);
    watches = wanted;
  }
}

void Proxy::ResetSome(Steady::time_point now) {
  if (!next_reset_.has_value() || now < *next_reset_) return;
  next_reset_ = now + faults_.reset_every;
  std::bernoulli_distribution chosen(faults_.reset_share);
  for (auto link = links_.begin(); link != links_.end();) {
    if (link->second.link.frozen() || !chosen(random_)) {
      ++link;
      continue;
    }
    ++counts_.resets;
    link->second.link.Reset();
    link = links_.erase(link);
  }
}

void Proxy::EndAll(bool with_reset) {
  for (auto& [id, watched] : links_) {
    if (!with_reset) continue;
    ++counts_.resets;
    watched.link.Reset();
  }
  links_.clear();
}

void Proxy::FreezeAll() {
  for (auto& [id, watched] : links_) {
    watched.link.Freeze();
    UpdateWatch(id, watched);
  }
}

std::string Proxy::Stats() const {
  size_t buffered_bytes = 0;
  size_t frozen = 0;
  for (const auto& [id, watched] : links_) {
    buffered_bytes += watched.link.buffered_bytes();
    frozen += watched.link.frozen() ? 1 : 0;
  }
  return absl::StrCat(
      "{\"open\": ", links_.size(), ", \"frozen\": ", frozen,
      ", \"buffered_bytes\": ", buffered_bytes,
      ", \"accepted\": ", counts_.accepted, ", \"refused\": ", counts_.refused,
      ", \"resets\": ", counts_.resets, ", \"flips\": ", counts_.flips,
      ", \"up_bytes\": ", counts_.up_bytes,
      ", \"down_bytes\": ", counts_.down_bytes, "}");
}

}  // namespace engram::fault
