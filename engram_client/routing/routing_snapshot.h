#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_SNAPSHOT_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_SNAPSHOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engram_client/routing/partition_bitmap.h"

namespace engram {

// A server's slot in the client; another server may have it when this one is
// gone for good. A plain number because it indexes arrays everywhere.
using ServerIndex = uint32_t;
inline constexpr ServerIndex kNoServer = ~ServerIndex{0};

// Work of one server that this client waits for; shared by all snapshots.
struct ServerLoad {
  std::atomic<int64_t> rows_in_flight{0};
};

// What is known about one server that announces its partitions.
struct ServerRoute {
  std::string name;
  std::string address;
  // Tells apart the servers that have had the slot.
  uint64_t generation = 0;
  bool announced = false;  // false: not connected, holds nothing
  bool draining = false;
  uint64_t max_rows_per_call = 0;
  std::vector<PartitionBitmap> held;  // by layer index of the table
};

// Who holds what at one moment. Immutable, so it may be read without a lock
// for as long as a reference is kept.
class RoutingSnapshot {
 public:
  // Servers of a partition: `ready` first choice, `draining` only where no
  // other can be asked. Ascending.
  struct Holders {
    absl::Span<const ServerIndex> ready;
    absl::Span<const ServerIndex> draining;
  };
  struct Hole {
    uint64_t partitions = 0;  // that nobody holds, of all layers
    size_t layer_index = 0;   // the first of them
    uint32_t partition = 0;
  };

  // `loads` has one for each server. Servers that are not announced hold
  // nothing. REQUIRES: all announced servers have bitmaps of the same sizes.
  RoutingSnapshot(std::vector<ServerRoute> servers,
                  absl::Span<const std::shared_ptr<ServerLoad>> loads);

  absl::Span<const ServerRoute> servers() const { return servers_; }
  const std::shared_ptr<ServerLoad>& load(ServerIndex server) const {
    return loads_[server];
  }

  // Empty holders for a layer or partition that nobody has announced.
  Holders HoldersOf(size_t layer_index, uint32_t partition) const;

  // True once some server has announced and every partition has a server.
  bool complete() const { return complete_; }
  // Whether some partition has more than one server.
  bool has_choice() const { return has_choice_; }
  // What is missing; no partitions when nobody has announced yet.
  const Hole& hole() const { return hole_; }

 private:
  struct Layer {
    std::vector<uint32_t> begin;      // into holders; one more than partitions
    std::vector<uint32_t> ready_end;  // by partition
    std::vector<ServerIndex> holders;
  };
  Layer BuildLayer(size_t layer_index, uint32_t partition_count) const;
  void CountHolders();

  std::vector<ServerRoute> servers_;
  std::vector<std::shared_ptr<ServerLoad>> loads_;
  std::vector<Layer> layers_;
  bool complete_ = false;
  bool has_choice_ = false;
  Hole hole_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_SNAPSHOT_H_
