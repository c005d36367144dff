#include "engram_client/routing/server_health.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/inlined_vector.h"

namespace engram {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Calls that an average is over, about.
constexpr uint32_t kBadAverageCalls = 32;
constexpr uint32_t kSlownessAverageCalls = 16;
// So many calls say something of a server with a share of the traffic, and of
// one that another is compared with.
constexpr uint32_t kFewCalls = 5;
constexpr uint32_t kCompareEvery = 8;

// The mean of the first values, then a moving average. Nothing is known before
// the first: NaN.
void Average(std::atomic<double>& average, double value, uint32_t& count,
             uint32_t over) {
  ++count;
  const double before = average.load(std::memory_order_relaxed);
  const double after =
      count == 1 ? value : before + (value - before) / std::min(count, over);
  average.store(after, std::memory_order_relaxed);
}

void RaiseTo(std::atomic<int64_t>& value, int64_t at_least) {
  int64_t before = value.load(std::memory_order_relaxed);
  while (before < at_least &&
         !value.compare_exchange_weak(before, at_least,
                                      std::memory_order_relaxed)) {
  }
}

bool SaysNothing(CallOutcome outcome) {
  return outcome == CallOutcome::kRefused || outcome == CallOutcome::kCancelled;
}

}  // namespace

ServerHealth::ServerHealth(size_t server_count, const Options& options)
    : options_(options) {
  for (size_t i = 0; i < std::max(server_count, options.max_servers); ++i) {
    servers_.push_back(std::make_unique<Server>());
    Replace(i, i < server_count ? 0 : kNobody);
  }
}

void ServerHealth::Add(ServerIndex server, uint64_t generation) {
  Replace(server, generation);
}

void ServerHealth::Remove(ServerIndex server) { Replace(server, kNobody); }

void ServerHealth::Replace(ServerIndex index, uint64_t generation) {
  const bool used = generation != kNobody;
  Server& server = *servers_[index];
  MutexLock lock(&server.mutex);
  server.generation = generation;
  server.state = State::kWell;
  server.next_ejection = options_.first_ejection;
  Forget(server, absl::InfinitePast());
  server.pushed_back_until_us.store(0, std::memory_order_relaxed);
  server.announced.store(used, std::memory_order_relaxed);
  if (!server.well.exchange(true)) unwell_.fetch_sub(1);

  MutexLock marking(&marking_);
  server.used.store(used, std::memory_order_relaxed);
  size_t length = length_.load();
  if (used) length = std::max<size_t>(length, index + 1);
  while (length > 0 && !servers_[length - 1]->used.load()) --length;
  length_.store(length);
}

std::optional<ServerHealth::Reason> ServerHealth::CallEnded(
    ServerIndex index, CallOutcome outcome, double slowness, absl::Time now,
    uint64_t generation) {
  if (SaysNothing(outcome)) return std::nullopt;
  Server& server = *servers_[index];
  MutexLock lock(&server.mutex);
  if (server.generation != generation) return std::nullopt;
  if (server.state == State::kOut) {
    // Of a call from before, or for what nobody else has.
    if (now < server.out_until) return std::nullopt;
    server.state = State::kBack;
    server.share_of = server.good = 0;
    Forget(server, now);
  }
  Count(server, outcome, slowness);
  const std::optional<Reason> fault = Fault(server);
  if (!fault.has_value()) {
    if (server.state == State::kBack && outcome == CallOutcome::kAnswered) {
      Promote(server, now);
    }
    return std::nullopt;
  }
  if (server.state == State::kWell && !MarkUnwell(server)) return std::nullopt;
  Eject(server, now);
  return fault;
}

void ServerHealth::Count(Server& server, CallOutcome outcome,
                         double slowness) const {
  const bool answered = outcome == CallOutcome::kAnswered;
  const uint32_t weight =
      outcome == CallOutcome::kCorrupt ? options_.corrupt_weight : 1;
  for (uint32_t i = 0; i < weight; ++i) {
    Average(server.bad_share, answered ? 0 : 1, server.calls, kBadAverageCalls);
  }
  const bool timed = answered || outcome == CallOutcome::kBeaten ||
                     outcome == CallOutcome::kTimedOut;
  if (slowness <= 0 || !timed) return;
  Average(server.slowness, std::log2(slowness), server.timed,
          kSlownessAverageCalls);
}

void ServerHealth::Forget(Server& server, absl::Time now) {
  server.since = now;
  server.calls = server.timed = 0;
  server.bad_share.store(kUnknown, std::memory_order_relaxed);
  server.slowness.store(kUnknown, std::memory_order_relaxed);
}

std::optional<ServerHealth::Reason> ServerHealth::Fault(
    const Server& server) const {
  uint32_t min_calls = options_.min_calls;
  if (server.state == State::kBack) {
    min_calls = server.share_of == 0 ? 1 : kFewCalls;
  }
  if (server.calls >= min_calls && IsTooBad(server)) return Reason::kErrors;
  if (server.timed >= min_calls && IsTooSlow(server)) return Reason::kLatency;
  return std::nullopt;
}

bool ServerHealth::IsTooBad(const Server& server) const {
  const double own = server.bad_share.load(std::memory_order_relaxed);
  if (!(own > options_.max_bad_share)) return false;
  const double others = MedianOfOthers(server, &Server::bad_share);
  return std::isnan(others) || own - others > options_.max_bad_share;
}

bool ServerHealth::IsTooSlow(const Server& server) const {
  const double limit = std::log2(options_.max_slowness);
  const double own = server.slowness.load(std::memory_order_relaxed);
  // What is usual may be what this one does to half of the calls: so the
  // others count, though they are not looked at for every call.
  if (!(own > limit) && server.timed % kCompareEvery != 0) return false;
  return own - MedianOfOthers(server, &Server::slowness) > limit;
}

double ServerHealth::MedianOfOthers(const Server& server,
                                    std::atomic<double> Server::*value) const {
  absl::InlinedVector<double, 64> others;
  for (const auto& other : InUse()) {
    const double known = ((*other).*value).load(std::memory_order_relaxed);
    if (other.get() != &server && !std::isnan(known)) others.push_back(known);
  }
  if (others.empty()) return kUnknown;
  // Of two in the middle the lower one.
  const auto middle = others.begin() + (others.size() - 1) / 2;
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

bool ServerHealth::MarkUnwell(Server& server) {
  MutexLock lock(&marking_);
  size_t announced = 0;
  size_t unwell = 1;  // with this one
  for (const auto& other : InUse()) {
    if (!other->announced.load(std::memory_order_relaxed)) continue;
    ++announced;
    unwell += other->well.load(std::memory_order_relaxed) ? 0 : 1;
  }
  const double limit =
      options_.max_ejected_share * static_cast<double>(announced);
  if (static_cast<double>(unwell) > limit) return false;
  server.well.store(false, std::memory_order_relaxed);
  unwell_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void ServerHealth::Eject(Server& server, absl::Time now) const {
  const bool was_well_for_long = server.state == State::kWell &&
                                 now - server.since > options_.longest_ejection;
  if (was_well_for_long) server.next_ejection = options_.first_ejection;
  server.state = State::kOut;
  server.out_until = now + server.next_ejection;
  server.next_ejection =
      std::min(2 * server.next_ejection, options_.longest_ejection);
  Forget(server, now);
}

void ServerHealth::Promote(Server& server, absl::Time now) {
  ++server.good;
  if (server.share_of == 0) {
    if (server.good < options_.good_probes) return;
    server.share_of = options_.first_share_of;
  } else {
    if (server.good < options_.good_calls) return;
    server.share_of /= 2;
  }
  server.good = 0;
  if (server.share_of > 1) return;
  server.state = State::kWell;
  Forget(server, now);
  server.well.store(true, std::memory_order_relaxed);
  unwell_.fetch_sub(1, std::memory_order_relaxed);
}

void ServerHealth::PushedBack(ServerIndex index, absl::Duration time,
                              absl::Time now, uint64_t generation) {
  const int64_t until_us =
      absl::ToUnixMicros(now + std::min(time, options_.longest_push_back));
  Server& server = *servers_[index];
  MutexLock lock(&server.mutex);
  if (server.generation != generation) return;
  RaiseTo(server.pushed_back_until_us, until_us);
  RaiseTo(some_pushed_back_until_us_, until_us);
}

bool ServerHealth::IsOut(ServerIndex server, absl::Time now) const {
  if (all_well()) return false;
  MutexLock lock(&servers_[server]->mutex);
  return servers_[server]->state == State::kOut &&
         now < servers_[server]->out_until;
}

ServerHealth::Doubt ServerHealth::DoubtOf(ServerIndex server,
                                          absl::Time now) const {
  if (IsOut(server, now)) return Doubt::kOut;
  return servers_[server]->bad_share.load(std::memory_order_relaxed) >
                 options_.suspect_share
             ? Doubt::kSuspect
             : Doubt::kNone;
}

ServerHealth::Standing ServerHealth::StandingOf(ServerIndex index,
                                                uint32_t turn,
                                                absl::Time now) const {
  if (HasPushedBack(index, now)) return Standing::kShunned;
  const Server& server = *servers_[index];
  MutexLock lock(&server.mutex);
  switch (server.state) {
    case State::kWell:
      return Standing::kUsable;
    case State::kOut:
      return now < server.out_until ? Standing::kShunned : Standing::kProbe;
    case State::kBack:
      if (server.share_of == 0) return Standing::kProbe;
      return turn % server.share_of == 0 ? Standing::kUsable
                                         : Standing::kShunned;
  }
  return Standing::kUsable;
}

}  // namespace engram
