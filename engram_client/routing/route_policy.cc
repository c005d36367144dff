#include "engram_client/routing/route_policy.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace engram {
namespace {

// Servers that may answer one item, best kind first.
absl::Span<const ServerIndex> Candidates(
    const RoutingSnapshot::Holders& holders, ServerIndex avoid) {
  const auto usable = [&](absl::Span<const ServerIndex> servers) {
    return servers.size() > 1 || (servers.size() == 1 && servers[0] != avoid);
  };
  if (usable(holders.ready)) return holders.ready;
  if (usable(holders.draining)) return holders.draining;
  return holders.ready.empty() ? holders.draining : holders.ready;
}

}  // namespace

void FewestRowsPolicy::Route(const RoutingSnapshot& snapshot,
                             absl::Span<const RouteItem> items,
                             absl::Span<ServerIndex> servers) {
  ENGRAM_CHECK(items.size() == servers.size());
  const uint32_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  std::vector<int64_t> cost;
  for (ServerIndex i = 0; i < snapshot.servers().size(); ++i) {
    cost.push_back(
        snapshot.load(i)->rows_in_flight.load(std::memory_order_relaxed) +
        new_server_rows_);
  }
  std::vector<bool> used(cost.size());
  const auto take = [&](size_t item, ServerIndex server) {
    servers[item] = server;
    if (!used[server]) {
      cost[server] -= new_server_rows_;
      used[server] = true;
    }
    cost[server] += items[item].rows;
  };

  // Partitions without a choice first: they say which servers are used anyway.
  struct Open {
    size_t item;
    absl::Span<const ServerIndex> candidates;
  };
  std::vector<Open> open;
  open.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const RouteItem& item = items[i];
    const auto candidates = Candidates(
        snapshot.HoldersOf(item.layer_index, item.partition), item.avoid);
    servers[i] = kNoServer;
    if (candidates.size() == 1) take(i, candidates[0]);
    if (candidates.size() > 1) open.push_back({i, candidates});
  }
  for (const auto& [i, candidates] : open) {
    const auto count = static_cast<uint32_t>(candidates.size());
    ServerIndex best = kNoServer;
    uint32_t at = turn % count;
    for (uint32_t c = 0; c < count; ++c) {
      const ServerIndex server = candidates[at];
      at = at + 1 == count ? 0 : at + 1;
      if (server == items[i].avoid) continue;
      if (best == kNoServer || cost[server] < cost[best]) best = server;
    }
    take(i, best);
  }
}

}  // namespace engram
