#include "engram_client/routing/routing_snapshot.h"

#include <utility>

#include "core/base/check.h"

namespace engram {

RoutingSnapshot::RoutingSnapshot(
    std::vector<ServerRoute> servers,
    absl::Span<const std::shared_ptr<ServerLoad>> loads)
    : servers_(std::move(servers)), loads_(loads.begin(), loads.end()) {
  ENGRAM_CHECK(servers_.size() == loads.size());
  for (const ServerRoute& server : servers_) {
    if (!server.announced) continue;
    for (size_t i = 0; i < server.held.size(); ++i) {
      layers_.push_back(BuildLayer(i, server.held[i].partition_count()));
    }
    break;
  }
  CountHolders();
}

RoutingSnapshot::Layer RoutingSnapshot::BuildLayer(
    size_t layer_index, uint32_t partition_count) const {
  Layer layer;
  layer.begin.resize(partition_count + 1);
  for (const ServerRoute& server : servers_) {
    if (!server.announced) continue;
    ENGRAM_CHECK(server.held[layer_index].partition_count() == partition_count);
    server.held[layer_index].ForEach([&](uint32_t p) { ++layer.begin[p + 1]; });
  }
  for (uint32_t p = 0; p < partition_count; ++p) {
    layer.begin[p + 1] += layer.begin[p];
  }
  layer.holders.resize(layer.begin.back());
  std::vector<uint32_t> next(layer.begin.begin(), layer.begin.end() - 1);
  const auto fill = [&](bool draining) {
    for (ServerIndex i = 0; i < servers_.size(); ++i) {
      if (!servers_[i].announced || servers_[i].draining != draining) continue;
      servers_[i].held[layer_index].ForEach(
          [&](uint32_t p) { layer.holders[next[p]++] = i; });
    }
  };
  fill(/*draining=*/false);
  layer.ready_end = next;
  fill(/*draining=*/true);
  return layer;
}

void RoutingSnapshot::CountHolders() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    for (uint32_t p = 0; p + 1 < layer.begin.size(); ++p) {
      const uint32_t holders = layer.begin[p + 1] - layer.begin[p];
      has_choice_ = has_choice_ || holders > 1;
      if (holders > 0) continue;
      if (hole_.partitions++ > 0) continue;
      hole_.layer_index = i;
      hole_.partition = p;
    }
  }
  complete_ = !layers_.empty() && hole_.partitions == 0;
}

RoutingSnapshot::Holders RoutingSnapshot::HoldersOf(size_t layer_index,
                                                    uint32_t partition) const {
  if (layer_index >= layers_.size()) return {};
  const Layer& layer = layers_[layer_index];
  if (partition + 1 >= layer.begin.size()) return {};
  const absl::Span<const ServerIndex> all(layer.holders);
  const uint32_t begin = layer.begin[partition];
  const uint32_t ready_end = layer.ready_end[partition];
  return {all.subspan(begin, ready_end - begin),
          all.subspan(ready_end, layer.begin[partition + 1] - ready_end)};
}

}  // namespace engram
