#include "table_server/rebalance/cluster_view.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// The layers to place, in the manifest's order, whatever the order of `wanted`.
absl::StatusOr<std::vector<size_t>> LayersToPlace(
    const Manifest& manifest, absl::Span<const LayerId> wanted) {
  absl::flat_hash_set<uint32_t> ids;
  for (const LayerId layer : wanted) {
    if (const auto index = manifest.IndexOf(layer); !index.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("layers to place: ", index.status().message()));
    }
    if (!ids.insert(ToInt(layer)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layers to place: layer ", ToInt(layer), " stands twice"));
    }
  }
  std::vector<size_t> indexes;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    const LayerId layer = manifest.layers()[i].layer_id;
    if (wanted.empty() || ids.contains(ToInt(layer))) indexes.push_back(i);
  }
  return indexes;
}

// Numbers are little-endian words and texts follow their length, so that no two
// views are the same bytes.
class DigestWriter {
 public:
  void Add(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<char>(value >> shift & 0xFF));
    }
  }
  void Add(absl::string_view text) {
    Add(uint64_t{text.size()});
    bytes_.append(text.data(), text.size());
  }
  std::string Hex() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits(bytes_.data(), bytes_.size()));
    return absl::BytesToHexString(
        {reinterpret_cast<const char*>(canonical.digest),
         sizeof(canonical.digest)});
  }

 private:
  std::string bytes_;
};

// Releases N and N+1 must agree: another encoding needs another first word.
std::string DigestOfView(absl::string_view table,
                         absl::Span<const PlacementLayer> layers,
                         absl::Span<const Member> members, uint32_t replicas) {
  DigestWriter writer;
  writer.Add("engram-view/1");
  writer.Add(table);
  writer.Add(uint64_t{layers.size()});
  for (const PlacementLayer& layer : layers) {
    writer.Add(uint64_t{ToInt(layer.layer_id)});
    writer.Add(uint64_t{layer.partition_count});
  }
  writer.Add(uint64_t{replicas});
  writer.Add(uint64_t{members.size()});
  for (const Member& member : members) {
    writer.Add(member.name);
    writer.Add(std::bit_cast<uint64_t>(member.capacity));
  }
  return writer.Hex();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ClusterView>> ClusterView::Create(
    const Manifest& manifest, Options options) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<size_t> to_place,
                          LayersToPlace(manifest, options.layers));
  std::shared_ptr<ClusterView> view(new ClusterView());
  view->replicas_ = options.replicas;
  view->members_ = std::move(options.members);
  std::sort(view->members_.begin(), view->members_.end(),
            [](const Member& a, const Member& b) { return a.name < b.name; });

  Placement::Options placement{.table = manifest.table(),
                               .replicas = options.replicas};
  view->layers_.resize(manifest.layers().size());
  for (size_t i = 0; i < view->layers_.size(); ++i) {
    view->layers_[i].partition_count = manifest.partition_count(i);
  }
  for (const size_t index : to_place) {
    Layer& layer = view->layers_[index];
    layer.placed_as = placement.layers.size();
    placement.layers.push_back(
        {manifest.layers()[index].layer_id, layer.partition_count});
  }
  view->digest_ = DigestOfView(placement.table, placement.layers,
                               view->members_, options.replicas);
  if (view->members_.empty()) return view;

  for (const Member& member : view->members_) {
    placement.members.push_back({member.name, member.capacity});
  }
  ENGRAM_ASSIGN_OR_RETURN(view->placement_,
                          Placement::Create(std::move(placement)));
  absl::StatusOr<std::vector<PartitionRef>> owned =
      view->placement_->OwnedBy(options.self);
  if (!owned.ok()) return view;  // it is no member
  view->owned_ = *std::move(owned);
  for (const PartitionRef& ref : view->owned_) {
    Layer& layer = view->layers_[manifest.IndexOf(ref.layer).value()];
    layer.owned.resize(layer.partition_count);
    layer.owned[ToInt(ref.partition)] = true;
  }
  return view;
}

bool ClusterView::Owns(size_t layer_index, PartitionId partition) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  const Layer& layer = layers_[layer_index];
  ENGRAM_CHECK(ToInt(partition) < layer.partition_count);
  return !layer.owned.empty() && layer.owned[ToInt(partition)];
}

absl::Span<const uint32_t> ClusterView::Owners(size_t layer_index,
                                               PartitionId partition) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  const Layer& layer = layers_[layer_index];
  ENGRAM_CHECK(ToInt(partition) < layer.partition_count);
  if (!placement_.has_value() || !layer.placed_as.has_value()) return {};
  return placement_->Owners(*layer.placed_as, partition);
}

bool ClusterView::IsPlaced(size_t layer_index) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  return layers_[layer_index].placed_as.has_value();
}

}  // namespace engram
