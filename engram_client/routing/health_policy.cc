#include "engram_client/routing/health_policy.h"

#include "absl/container/inlined_vector.h"

namespace engram {

void HealthPolicy::Route(const RoutingSnapshot& snapshot,
                         absl::Span<const RouteItem> items,
                         const RouteContext& context,
                         absl::Span<ServerIndex> servers) {
  if (health_->all_usable(context.now)) {
    return policy_->Route(snapshot, items, context, servers);
  }
  const uint32_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  absl::InlinedVector<bool, 64> shunned(snapshot.servers().size());
  for (ServerIndex server = 0; server < shunned.size(); ++server) {
    shunned[server] = (!context.shunned.empty() && context.shunned[server]) ||
                      IsShunned(snapshot, server, turn, context.now);
  }
  policy_->Route(snapshot, items, {.now = context.now, .shunned = shunned},
                 servers);
}

bool HealthPolicy::IsShunned(const RoutingSnapshot& snapshot,
                             ServerIndex server, uint32_t turn,
                             absl::Time now) const {
  switch (health_->StandingOf(server, turn, now)) {
    case ServerHealth::Standing::kUsable:
      return false;
    case ServerHealth::Standing::kProbe:
      return snapshot.load(server)->rows_in_flight.load(
                 std::memory_order_relaxed) > 0;
    case ServerHealth::Standing::kShunned:
      return true;
  }
  return false;
}

}  // namespace engram
