#include "engram_client/routing/route_policy.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace engram {
namespace {

using Holders = RoutingSnapshot::Holders;

// Servers that may answer one item, best kind first.
absl::Span<const ServerIndex> Candidates(const Holders& holders,
                                         ServerIndex avoid) {
  const auto usable = [&](absl::Span<const ServerIndex> servers) {
    return servers.size() > 1 || (servers.size() == 1 && servers[0] != avoid);
  };
  if (usable(holders.ready)) return holders.ready;
  if (usable(holders.draining)) return holders.draining;
  return holders.ready.empty() ? holders.draining : holders.ready;
}

// The same where servers are shunned. Lie in `found`.
absl::Span<const ServerIndex> CandidatesAmong(const Holders& holders,
                                              ServerIndex avoid,
                                              absl::Span<const bool> shunned,
                                              std::vector<ServerIndex>& found) {
  enum Kind { kReady, kDraining, kShunned, kAvoided, kNobody };
  const auto kind_of = [&](ServerIndex server, Kind kind) {
    if (server == avoid) return kAvoided;
    return shunned[server] ? kShunned : kind;
  };
  Kind best = kNobody;
  const auto look_at = [&](ServerIndex server, Kind kind) {
    kind = kind_of(server, kind);
    if (kind < best) found.clear();
    best = std::min(best, kind);
    if (kind == best) found.push_back(server);
  };
  found.clear();
  for (const ServerIndex server : holders.ready) look_at(server, kReady);
  for (const ServerIndex server : holders.draining) look_at(server, kDraining);
  return found;
}

// What each server costs, given what the gather has given it.
class Costs {
 public:
  Costs(const RoutingSnapshot& snapshot, int64_t new_server_rows)
      : new_server_rows_(new_server_rows), used_(snapshot.servers().size()) {
    for (ServerIndex i = 0; i < used_.size(); ++i) {
      rows_.push_back(
          snapshot.load(i)->rows_in_flight.load(std::memory_order_relaxed) +
          new_server_rows);
    }
  }

  void Add(ServerIndex server, uint32_t rows) {
    if (!used_[server]) {
      rows_[server] -= new_server_rows_;
      used_[server] = true;
    }
    rows_[server] += rows;
  }

  // The cheapest but `avoid`; the first of equals, from `turn` on.
  ServerIndex Cheapest(absl::Span<const ServerIndex> candidates,
                       ServerIndex avoid, uint32_t turn) const {
    const auto count = static_cast<uint32_t>(candidates.size());
    ServerIndex best = kNoServer;
    uint32_t at = turn % count;
    for (uint32_t c = 0; c < count; ++c) {
      const ServerIndex server = candidates[at];
      at = at + 1 == count ? 0 : at + 1;
      if (server == avoid) continue;
      if (best == kNoServer || rows_[server] < rows_[best]) best = server;
    }
    return best;
  }

 private:
  const int64_t new_server_rows_;
  std::vector<int64_t> rows_;
  std::vector<bool> used_;
};

}  // namespace

void FewestRowsPolicy::Route(const RoutingSnapshot& snapshot,
                             absl::Span<const RouteItem> items,
                             const RouteContext& context,
                             absl::Span<ServerIndex> servers) {
  ENGRAM_CHECK(items.size() == servers.size());
  const uint32_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  Costs costs(snapshot, new_server_rows_);
  std::vector<ServerIndex> found;
  const auto candidates_of = [&](const RouteItem& item) {
    const Holders holders =
        snapshot.HoldersOf(item.layer_index, item.partition);
    return context.shunned.empty()
               ? Candidates(holders, item.avoid)
               : CandidatesAmong(holders, item.avoid, context.shunned, found);
  };

  // Partitions without a choice first: they say which servers are used anyway.
  struct Open {
    size_t item;
    absl::Span<const ServerIndex> candidates;
  };
  std::vector<Open> open;
  open.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const auto candidates = candidates_of(items[i]);
    servers[i] = kNoServer;
    if (candidates.size() == 1) {
      servers[i] = candidates[0];
      costs.Add(servers[i], items[i].rows);
    }
    if (candidates.size() > 1) open.push_back({i, candidates});
  }
  for (const auto& [i, known] : open) {
    const RouteItem& item = items[i];
    const auto candidates =
        context.shunned.empty() ? known : candidates_of(item);
    servers[i] = costs.Cheapest(candidates, item.avoid, turn);
    costs.Add(servers[i], item.rows);
  }
}

}  // namespace engram
