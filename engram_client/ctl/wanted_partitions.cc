#include "engram_client/ctl/wanted_partitions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/placement/placement.h"

namespace engram::ctl {
namespace {

// In the manifest's order.
absl::StatusOr<std::vector<PlacementLayer>> LayersOf(
    const Manifest& manifest, const std::vector<LayerId>& wanted) {
  for (auto layer = wanted.begin(); layer != wanted.end(); ++layer) {
    if (const auto index = manifest.IndexOf(*layer); !index.ok()) {
      return absl::InvalidArgumentError(index.status().message());
    }
    if (std::find(wanted.begin(), layer, *layer) != layer) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", ToInt(*layer), " stands twice"));
    }
  }
  std::vector<PlacementLayer> layers;
  for (const auto& [layer, count] : manifest.PartitionCounts()) {
    if (wanted.empty() ||
        std::find(wanted.begin(), wanted.end(), layer) != wanted.end()) {
      layers.push_back({layer, count});
    }
  }
  return layers;
}

}  // namespace

absl::StatusOr<std::vector<PartitionRef>> WantedPartitions(
    const Manifest& manifest, const PartitionChoice& choice) {
  ENGRAM_ASSIGN_OR_RETURN(std::vector<PlacementLayer> layers,
                          LayersOf(manifest, choice.layers));
  if (choice.members.empty()) {
    std::vector<PartitionRef> all;
    for (const PlacementLayer& layer : layers) {
      for (uint32_t p = 0; p < layer.partition_count; ++p) {
        all.push_back({layer.layer_id, PartitionId{p}});
      }
    }
    return all;
  }
  ENGRAM_RETURN_IF_ERROR(CheckIsMember(choice.members, choice.server_name));
  Placement::Options options{.table = manifest.table(),
                             .layers = std::move(layers),
                             .replicas = choice.replicas};
  for (const Member& member : choice.members) {
    options.members.push_back({member.name, member.capacity});
  }
  ENGRAM_ASSIGN_OR_RETURN(const Placement placement,
                          Placement::Create(std::move(options)));
  return placement.OwnedBy(choice.server_name);
}

}  // namespace engram::ctl
