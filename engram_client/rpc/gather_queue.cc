#include "engram_client/rpc/gather_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

// Whether a segment may stay in line at `server`: ready with its partition, or
// draining with it and nobody ready but the avoided has it.
bool IsFit(const RoutingSnapshot& snapshot, ServerIndex server,
           const GatherSegment& segment) {
  const RoutingSnapshot::Holders holders =
      snapshot.HoldersOf(segment.table_layer, ToInt(segment.part.partition));
  const auto in = [&](absl::Span<const ServerIndex> servers) {
    return std::find(servers.begin(), servers.end(), server) != servers.end();
  };
  const bool no_other_ready =
      std::all_of(holders.ready.begin(), holders.ready.end(),
                  [&](ServerIndex ready) { return ready == segment.avoid; });
  return in(holders.ready) || (no_other_ready && in(holders.draining));
}

}  // namespace

absl::Time GatherQueue::Route(const RoutingSnapshot& snapshot,
                              RoutePolicy& policy, absl::Time now) {
  TakeBackUnfit(snapshot);
  std::vector<GatherSegment> waiting;
  std::vector<GatherSegment> candidates;
  std::vector<RouteItem> items;
  for (const GatherSegment& segment : waiting_) {
    if (segment.hold_until > now) {
      waiting.push_back(segment);
      continue;
    }
    candidates.push_back(segment);
    items.push_back({segment.table_layer, ToInt(segment.part.partition),
                     segment.part.rows(), segment.avoid});
  }
  std::vector<ServerIndex> chosen(items.size());
  policy.Route(snapshot, items, absl::MakeSpan(chosen));

  std::vector<std::vector<GatherSegment>> by_server(servers_.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const GatherSegment& segment = candidates[i];
    const bool too_soon =
        chosen[i] == segment.avoid && segment.avoid_until > now;
    if (chosen[i] == kNoServer || too_soon) {
      waiting.push_back(segment);
    } else {
      by_server[chosen[i]].push_back(segment);
    }
  }
  for (ServerIndex server = 0; server < by_server.size(); ++server) {
    Line(snapshot, server, by_server[server]);
  }
  waiting_ = std::move(waiting);

  absl::Time again = absl::InfiniteFuture();
  for (const GatherSegment& segment : waiting_) {
    for (const absl::Time when : {segment.hold_until, segment.avoid_until}) {
      if (when > now) again = std::min(again, when);
    }
  }
  return again;
}

void GatherQueue::Line(const RoutingSnapshot& snapshot, ServerIndex server,
                       absl::Span<const GatherSegment> segments) {
  const ServerRoute& route = snapshot.servers()[server];
  uint64_t max_rows = max_rows_per_call_;
  if (route.max_rows_per_call > 0) {
    max_rows = std::min(max_rows, route.max_rows_per_call);
  }
  for (auto& call_segments : CutIntoCalls(segments, max_rows)) {
    uint64_t rows = 0;
    for (const GatherSegment& segment : call_segments) {
      rows += segment.part.rows();
    }
    servers_[server].line.push_back(
        {server, absl::StrCat("server ", route.name, " at ", route.address),
         std::move(call_segments), rows,
         LoadCharge(snapshot.load(server), rows)});
  }
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
  std::deque<PlannedCall>& line = servers_[server].line;
  std::vector<GatherSegment> taken;
  if (line.empty()) return taken;
  std::deque<PlannedCall> stay;
  for (PlannedCall& call : line) {
    if (std::any_of(call.segments.begin(), call.segments.end(), unfit)) {
      taken.insert(taken.end(), call.segments.begin(), call.segments.end());
    } else {
      stay.push_back(std::move(call));
    }
  }
  line.swap(stay);
  return taken;
}

void GatherQueue::TakeBackUnfit(const RoutingSnapshot& snapshot) {
  for (ServerIndex server = 0; server < servers_.size(); ++server) {
    const std::vector<GatherSegment> taken =
        TakeFromLine(server, [&](const GatherSegment& segment) {
          return !IsFit(snapshot, server, segment);
        });
    waiting_.insert(waiting_.end(), taken.begin(), taken.end());
  }
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

std::vector<GatherSegment> GatherQueue::AllSegments() const {
  std::vector<GatherSegment> segments = waiting_;
  for (const Server& server : servers_) {
    for (const PlannedCall& call : server.line) {
      segments.insert(segments.end(), call.segments.begin(),
                      call.segments.end());
    }
  }
  return segments;
}

}  // namespace engram
