#include "engram_client/ctl/coverage.h"

#include <algorithm>
#include <map>
#include <set>

namespace engram::ctl {
namespace {

// How many servers hold each partition of each layer of one table.
using Holders = std::map<uint32_t, std::vector<uint32_t>>;

void Count(const ServerProbe& server, Holders& holders) {
  for (const ServerProbe::Layer& layer : server.layers) {
    std::vector<uint32_t>& counts = holders[layer.layer_id];
    counts.resize(std::max(counts.size(), layer.held.size()));
    for (size_t p = 0; p < layer.held.size(); ++p) {
      if (layer.held[p]) ++counts[p];
    }
  }
}

std::vector<LayerCoverage> ToCoverage(const Holders& holders) {
  std::vector<LayerCoverage> layers;
  for (const auto& [layer_id, counts] : holders) {
    LayerCoverage layer = {.layer_id = layer_id, .partitions = counts.size()};
    layer.partitions_held_by.resize(1);
    for (const uint32_t count : counts) {
      if (count >= layer.partitions_held_by.size()) {
        layer.partitions_held_by.resize(count + 1);
      }
      ++layer.partitions_held_by[count];
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

std::vector<TableCoverage> CoverageOf(absl::Span<const ServerProbe> servers) {
  std::vector<std::string> versions;
  std::map<std::string, Holders> tables;
  std::set<uint64_t> counted;
  for (const ServerProbe& server : servers) {
    if (!server.error.empty()) continue;
    if (!counted.insert(server.instance_id).second) continue;
    if (!tables.contains(server.version)) versions.push_back(server.version);
    Count(server, tables[server.version]);
  }
  std::vector<TableCoverage> coverage;
  for (const std::string& version : versions) {
    coverage.push_back({version, ToCoverage(tables[version])});
  }
  return coverage;
}

}  // namespace engram::ctl
