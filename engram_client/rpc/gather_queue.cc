#include "engram_client/rpc/gather_queue.h"

#include <algorithm>
#include <iterator>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace engram {
namespace {

PlannedCall Plan(const RoutingSnapshot& snapshot, ServerIndex server,
                 std::vector<GatherSegment> segments) {
  const ServerRoute& route = snapshot.servers()[server];
  uint64_t rows = 0;
  for (const GatherSegment& segment : segments) rows += segment.part.rows();
  return {server,
          absl::StrCat("server ", route.name, " at ", route.address),
          std::move(segments),
          rows,
          LoadCharge(snapshot.load(server), rows),
          route.generation};
}

}  // namespace

void GatherQueue::Add(absl::Span<const GatherPlan::Part> parts) {
  waiting_.reserve(waiting_.size() + parts.size());
  for (const GatherPlan::Part& part : parts) {
    waiting_.push_back({.part = part});
  }
}

absl::Time GatherQueue::Route(const RoutingSnapshot& snapshot,
                              RoutePolicy& policy, absl::Time now) {
  TakeBackUnfit(snapshot);
  const size_t server_count = snapshot.servers().size();
  if (servers_.size() < server_count) servers_.resize(server_count);
  std::vector<GatherSegment> candidates = TakeCandidates(now);
  const std::vector<ServerIndex> chosen =
      Choose(snapshot, policy, candidates, now);
  std::vector<size_t> counts(server_count);
  for (const ServerIndex server : chosen) {
    if (server != kNoServer) ++counts[server];
  }
  std::vector<std::vector<GatherSegment>> by_server(server_count);
  for (ServerIndex server = 0; server < by_server.size(); ++server) {
    by_server[server].reserve(counts[server]);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const bool waits =
        chosen[i] == kNoServer || candidates[i].IsTooSoonFor(chosen[i], now);
    (waits ? waiting_ : by_server[chosen[i]])
        .push_back(std::move(candidates[i]));
  }
  for (ServerIndex server = 0; server < by_server.size(); ++server) {
    Line(snapshot, server, std::move(by_server[server]));
  }

  absl::Time again = absl::InfiniteFuture();
  for (const GatherSegment& segment : waiting_) {
    if (segment.setbacks == nullptr) continue;
    for (const absl::Time when :
         {segment.setbacks->hold_until, segment.setbacks->avoid_until}) {
      if (when > now) again = std::min(again, when);
    }
  }
  return again;
}

std::vector<GatherSegment> GatherQueue::TakeCandidates(absl::Time now) {
  const auto first_held = std::stable_partition(
      waiting_.begin(), waiting_.end(),
      [&](const GatherSegment& s) { return !s.IsHeld(now); });
  std::vector<GatherSegment> held(std::make_move_iterator(first_held),
                                  std::make_move_iterator(waiting_.end()));
  waiting_.erase(first_held, waiting_.end());
  return std::exchange(waiting_, std::move(held));
}

std::vector<ServerIndex> GatherQueue::Choose(
    const RoutingSnapshot& snapshot, RoutePolicy& policy,
    absl::Span<const GatherSegment> candidates, absl::Time now) const {
  std::vector<RouteItem> items;
  items.reserve(candidates.size());
  for (const GatherSegment& segment : candidates) {
    items.push_back(ItemOf(segment));
  }
  std::vector<ServerIndex> chosen(items.size());
  policy.Route(snapshot, items, {.now = now, .shunned = {}},
               absl::MakeSpan(chosen));
  return chosen;
}

void GatherQueue::Line(const RoutingSnapshot& snapshot, ServerIndex server,
                       std::vector<GatherSegment> segments) {
  const uint64_t max_rows = MaxRowsOf(snapshot.servers()[server]);
  for (auto& call_segments : CutIntoCalls(std::move(segments), max_rows)) {
    servers_[server].line.push_back(
        Plan(snapshot, server, std::move(call_segments)));
  }
}

uint64_t GatherQueue::MaxRowsOf(const ServerRoute& route) const {
  return route.max_rows_per_call == 0
             ? max_rows_per_call_
             : std::min(max_rows_per_call_, route.max_rows_per_call);
}

std::vector<PlannedCall> GatherQueue::PlanAround(
    ServerIndex server, std::vector<GatherSegment> segments,
    const RoutingSnapshot& snapshot, RoutePolicy& policy,
    absl::Time now) const {
  std::vector<RouteItem> items;
  items.reserve(segments.size());
  for (const GatherSegment& segment : segments) {
    items.push_back(ItemOf(segment));
    items.back().avoid = server;
  }
  absl::InlinedVector<bool, 64> too_soon(snapshot.servers().size());
  for (const GatherSegment& segment : segments) {
    const ServerIndex other = segment.avoid();
    if (other < too_soon.size() && segment.IsTooSoonFor(other, now)) {
      too_soon[other] = true;
    }
  }
  std::vector<ServerIndex> chosen(items.size());
  policy.Route(snapshot, items, {.now = now, .shunned = too_soon},
               absl::MakeSpan(chosen));
  std::vector<std::vector<GatherSegment>> by_server(snapshot.servers().size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == kNoServer || chosen[i] == server ||
        segments[i].IsTooSoonFor(chosen[i], now)) {
      return {};
    }
    by_server[chosen[i]].push_back(std::move(segments[i]));
  }
  std::vector<PlannedCall> calls;
  for (ServerIndex other = 0; other < by_server.size(); ++other) {
    if (by_server[other].empty()) continue;
    calls.push_back(Plan(snapshot, other, std::move(by_server[other])));
    if (calls.back().rows > MaxRowsOf(snapshot.servers()[other])) return {};
  }
  return calls;
}

std::vector<PlannedCall> GatherQueue::TakeStartable() {
  std::vector<PlannedCall> startable;
  for (Server& server : servers_) {
    while (!server.line.empty() && server.in_flight < kMaxCallsPerServer) {
      startable.push_back(std::move(server.line.front()));
      server.line.pop_front();
      ++server.in_flight;
    }
  }
  return startable;
}

std::vector<GatherSegment> GatherQueue::TakeFromLine(
    ServerIndex server, absl::FunctionRef<bool(const GatherSegment&)> unfit) {
  std::vector<GatherSegment> taken;
  if (server >= servers_.size() || servers_[server].line.empty()) return taken;
  std::list<PlannedCall>& line = servers_[server].line;
  std::list<PlannedCall> stay;
  for (PlannedCall& call : line) {
    if (std::any_of(call.segments.begin(), call.segments.end(), unfit)) {
      std::move(call.segments.begin(), call.segments.end(),
                std::back_inserter(taken));
    } else {
      stay.push_back(std::move(call));
    }
  }
  line.swap(stay);
  return taken;
}

void GatherQueue::TakeBackUnfit(const RoutingSnapshot& snapshot) {
  for (ServerIndex server = 0; server < servers_.size(); ++server) {
    const std::list<PlannedCall>& line = servers_[server].line;
    if (line.empty()) continue;
    const bool is_there =
        server < snapshot.servers().size() &&
        snapshot.servers()[server].generation == line.front().generation;
    std::vector<GatherSegment> taken =
        TakeFromLine(server, [&](const GatherSegment& segment) {
          return !is_there || !IsFit(snapshot, server, segment);
        });
    std::move(taken.begin(), taken.end(), std::back_inserter(waiting_));
  }
}

bool GatherQueue::IsFit(const RoutingSnapshot& snapshot, ServerIndex server,
                        const GatherSegment& segment) const {
  const RoutingSnapshot::Holders holders = snapshot.HoldersOf(
      table_layers_[segment.part.layer_index], ToInt(segment.part.partition));
  const auto in = [&](absl::Span<const ServerIndex> servers) {
    return std::find(servers.begin(), servers.end(), server) != servers.end();
  };
  const bool no_other_ready =
      std::all_of(holders.ready.begin(), holders.ready.end(),
                  [&](ServerIndex ready) { return ready == segment.avoid(); });
  return in(holders.ready) || (no_other_ready && in(holders.draining));
}

bool GatherQueue::empty() const {
  return waiting_.empty() &&
         std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& server) { return server.line.empty(); });
}

void GatherQueue::Clear() {
  waiting_.clear();
  for (Server& server : servers_) server.line.clear();
}

std::vector<GatherPlan::Part> GatherQueue::AllParts() const {
  std::vector<GatherPlan::Part> parts = PartsOf(waiting_);
  for (const Server& server : servers_) {
    for (const PlannedCall& call : server.line) {
      for (const GatherSegment& segment : call.segments) {
        parts.push_back(segment.part);
      }
    }
  }
  return parts;
}

}  // namespace engram
