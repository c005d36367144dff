#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_ROUTING_ROUTING_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_ROUTING_ROUTING_FIXTURE_H_

#include <string>
#include <vector>

#include "engram_client/routing/routing_snapshot.h"

namespace engram {

// A server that holds `partitions` of one layer.
inline ServerRoute RouteOf(const std::string& name, uint32_t partition_count,
                           const std::vector<uint32_t>& partitions,
                           bool draining = false) {
  ServerRoute route;
  route.name = name;
  route.draining = draining;
  route.held.emplace_back(partition_count);
  for (const uint32_t p : partitions) route.held[0].Set(p);
  return route;
}

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_ROUTING_ROUTING_FIXTURE_H_
