#include "engram_client/rpc/gather_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace engram {

absl::Time GatherQueue::Route(const RoutingSnapshot& snapshot,
                              RoutePolicy& policy, absl::Time now) {
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
