#include "tests/fault/tcp_proxy/link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace engram::fault {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Read from one side before others have their turn.
constexpr size_t kReadsPerPump = 4;
constexpr size_t kUp = static_cast<size_t>(Link::Side::kClient);

const DirectionFaults& FaultsOf(const Faults& faults, size_t from) {
  return from == kUp ? faults.up : faults.down;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Link::Link(Fd client, Fd server) : fds_{std::move(client), std::move(server)} {}

bool Link::Pump(const Faults& faults, Steady::time_point now,
                std::mt19937_64& random, ProxyCounts& counts) {
  if (frozen_) return true;
  for (size_t from : {0, 1}) {
    if (!Read(from, faults, now, random, counts) ||
        (!faults.stall && !Send(from, faults, now, counts))) {
      Reset();
      return false;
    }
  }
  return !flows_[0].ended || !flows_[1].ended;
}

bool Link::Read(size_t from, const Faults& faults, Steady::time_point now,
                std::mt19937_64& random, ProxyCounts& counts) {
  Flow& flow = flows_[from];
  for (size_t i = 0; i < kReadsPerPump && !flow.no_more; ++i) {
    char buffer[kReadBytes];
    const size_t room = std::min(flow.pipe.room(), sizeof(buffer));
    if (room == 0) return true;
    const ssize_t size = recv(fds_[from].get(), buffer, room, 0);
    if (size < 0) return WouldBlock() || errno == EINTR;
    if (size == 0) {
      flow.no_more = true;
      return true;
    }
    if (from != kUp) {
      counts.flips += flipper_.Pass({buffer, static_cast<size_t>(size)},
                                    faults.flip_share, random);
    }
    flow.pipe.Add(std::string(buffer, static_cast<size_t>(size)), now);
    if (static_cast<size_t>(size) < room) return true;
  }
  return true;
}

bool Link::Send(size_t from, const Faults& faults, Steady::time_point now,
                ProxyCounts& counts) {
  Flow& flow = flows_[from];
  const DirectionFaults& direction = FaultsOf(faults, from);
  const int to = fds_[1 - from].get();
  send_blocked_[from] = false;
  while (true) {
    const absl::string_view bytes = flow.pipe.Ready(direction, now);
    if (bytes.empty()) break;
    const ssize_t size = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0) {
      if (!WouldBlock() && errno != EINTR) return false;
      send_blocked_[from] = true;
      return true;
    }
    (from == kUp ? counts.up_bytes : counts.down_bytes) +=
        static_cast<uint64_t>(size);
    flow.pipe.Remove(static_cast<size_t>(size), direction);
  }
  if (flow.no_more && flow.pipe.empty() && !flow.ended) {
    flow.ended = true;
    shutdown(to, SHUT_WR);
  }
  return true;
}

uint32_t Link::Interest(Side side, const Faults& faults) const {
  if (frozen_) return 0;
  const auto from = static_cast<size_t>(side);
  uint32_t events = 0;
  if (!flows_[from].no_more && flows_[from].pipe.room() > 0) events |= EPOLLIN;
  if (!faults.stall && send_blocked_[1 - from]) events |= EPOLLOUT;
  return events;
}

std::optional<Steady::time_point> Link::NextPump(const Faults& faults) const {
  std::optional<Steady::time_point> next;
  if (frozen_ || faults.stall) return next;
  for (const size_t from : {0, 1}) {
    if (send_blocked_[from]) continue;
    const auto ready = flows_[from].pipe.NextReady(FaultsOf(faults, from));
    if (ready.has_value() && (!next.has_value() || *ready < *next)) {
      next = ready;
    }
  }
  return next;
}

void Link::Reset() {
  for (Fd& fd : fds_) fd.Reset();
}

}  // namespace engram::fault
