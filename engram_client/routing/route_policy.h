#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTE_POLICY_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTE_POLICY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engram_client/routing/routing_snapshot.h"

namespace engram {

// Rows of one partition that need a server.
struct RouteItem {
  uint32_t layer_index = 0;
  uint32_t partition = 0;
  uint32_t rows = 0;
  // Failed these rows just now: taken only where nobody else has them.
  ServerIndex avoid = kNoServer;
};

// What else bears on the choice.
struct RouteContext {
  absl::Time now;  // on the steady clock
  // By server, or empty: taken only where no other holds the partition but the
  // avoided, not even a draining one.
  absl::Span<const bool> shunned;
};

// Picks servers for the partitions of a gather.
//
// Thread safety: all methods may be called concurrently.
class RoutePolicy {
 public:
  virtual ~RoutePolicy() = default;

  // servers[i] becomes a holder of items[i], kNoServer where there is none. A
  // draining server only where no ready one but the avoided holds the
  // partition. REQUIRES: servers.size() == items.size().
  virtual void Route(const RoutingSnapshot& snapshot,
                     absl::Span<const RouteItem> items,
                     const RouteContext& context,
                     absl::Span<ServerIndex> servers) = 0;
};

// Takes the server with the fewest rows in flight, counting those that this
// gather has given it and a fixed charge for a server that the gather does not
// use yet: a small gather stays on few servers, a large one spreads. Equal
// ones take turns.
class FewestRowsPolicy final : public RoutePolicy {
 public:
  // `new_server_rows`: what one more call costs, in rows.
  explicit FewestRowsPolicy(int64_t new_server_rows = 512)
      : new_server_rows_(new_server_rows) {}

  void Route(const RoutingSnapshot& snapshot, absl::Span<const RouteItem> items,
             const RouteContext& context,
             absl::Span<ServerIndex> servers) override;

 private:
  const int64_t new_server_rows_;
  std::atomic<uint32_t> turn_{0};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTE_POLICY_H_
