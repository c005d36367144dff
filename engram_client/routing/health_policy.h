#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_HEALTH_POLICY_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_HEALTH_POLICY_H_

#include <atomic>
#include <cstdint>

#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/server_health.h"

namespace engram {

// Another policy that keeps away from servers that are not well or have pushed
// back, as ServerHealth says: they get probes, a share, or only what nobody
// else has.
class HealthPolicy final : public RoutePolicy {
 public:
  // Both must outlive the policy.
  HealthPolicy(const ServerHealth* health, RoutePolicy* policy)
      : health_(health), policy_(policy) {}

  void Route(const RoutingSnapshot& snapshot, absl::Span<const RouteItem> items,
             const RouteContext& context,
             absl::Span<ServerIndex> servers) override;

 private:
  bool IsShunned(const RoutingSnapshot& snapshot, ServerIndex server,
                 uint32_t turn, absl::Time now) const;

  const ServerHealth* const health_;
  RoutePolicy* const policy_;
  std::atomic<uint32_t> turn_{0};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_HEALTH_POLICY_H_
