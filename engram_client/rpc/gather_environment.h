#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_ENVIRONMENT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/routing_table.h"
#include "engram_client/rpc/call_monitor.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/rpc/transport_slots.h"
#include "engram_client/table_client.h"

namespace engram {

class GatherCache;
class GatherOperation;

// What all gathers of a client share. Outlives every gather until its
// on_finished has been called.
struct GatherEnvironment {
  const TableInfo* table = nullptr;
  RoutingTable* routing = nullptr;
  RoutePolicy* policy = nullptr;
  TimerQueue* timers = nullptr;
  // Gathers keep it: what they gave up is told after their end.
  std::shared_ptr<CallMonitor> monitor;
  TransportSlots* transports = nullptr;
  uint64_t max_rows_per_call = 0;
  bool want_crc32c = false;
  // Null: none. Gathers keep it, as the monitor.
  std::shared_ptr<GatherCache> cache;
  // Why servers are not connected, for messages; empty if all are.
  std::function<std::string()> server_problems;
  // The end of a gather that was not refused is about to be told: it no longer
  // counts as in flight.
  std::function<void()> on_ending;
  // The gather has told its end and uses the environment no more.
  std::function<void(GatherOperation*)> on_finished;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_ENVIRONMENT_H_
