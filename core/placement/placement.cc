#include "core/placement/placement.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little,
              "hashes are of little-endian words");

constexpr double kFull = 1.03;  // of a member's share
constexpr double kMinRelativeCapacity = 1e-6;

// -ln((bits + 0.5) / 2^52) for the upper 52 bits of `hash`. Not std::log:
// another C library may round it differently, and all servers must agree.
double NegativeLog(uint64_t hash) {
  // u = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const double u = (static_cast<double>(hash >> 12) + 0.5) * 0x1p-52;
  const uint64_t bits = std::bit_cast<uint64_t>(u);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) |
                                   (uint64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // ln(m) = 2 artanh(s), |s| < 0.172: the last term is below 2^-55 of the sum.
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int odd = 21; odd >= 1; odd -= 2) series = series * s2 + 1.0 / odd;
  return -(2 * s * series + exponent * 0.69314718055994531);
}

absl::Status CheckOptions(const Placement::Options& options) {
  const auto invalid = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("placement: ", parts...));
  };
  if (options.replicas == 0) return invalid("0 replicas, the least is 1");
  const size_t count = options.members.size();
  if (count == 0 || count > Placement::kMaxMembers) {
    return invalid(count, " members, not within 1 .. ", Placement::kMaxMembers);
  }
  for (size_t i = 0; i < count; ++i) {
    const PlacementMember& member = options.members[i];
    if (member.name.empty()) return invalid("a member without a name");
    if (i > 0 && member.name == options.members[i - 1].name) {
      return invalid("two members are named ", member.name);
    }
    if (!(member.capacity > 0) || !std::isfinite(member.capacity)) {
      return invalid("member ", member.name, " has capacity ", member.capacity,
                     ", not above 0 and finite");
    }
  }
  std::vector<uint32_t> ids;
  for (const PlacementLayer& layer : options.layers) {
    ids.push_back(ToInt(layer.layer_id));
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) return invalid("layer ", *twice, " stands twice");
  return absl::OkStatus();
}

// Capacities as parts of the largest, so that no sum of them overflows.
std::vector<double> RelativeCapacities(
    absl::Span<const PlacementMember> members) {
  double largest = 0;
  for (const PlacementMember& member : members) {
    largest = std::max(largest, member.capacity);
  }
  std::vector<double> capacities;
  for (const PlacementMember& member : members) {
    capacities.push_back(
        std::max(member.capacity / largest, kMinRelativeCapacity));
  }
  return capacities;
}

// Most partitions of a layer that each member may own: kFull of its share. A
// share above partition_count is cut to it, and the rest shared anew.
std::vector<uint32_t> Limits(absl::Span<const double> capacities,
                             uint32_t partition_count, uint32_t owners) {
  std::vector<bool> whole(capacities.size());  // gets every partition
  double share_of_one = 0;
  for (bool changed = true; changed;) {
    changed = false;
    double left = static_cast<double>(owners) * partition_count;
    double total = 0;
    for (size_t i = 0; i < capacities.size(); ++i) {
      if (whole[i]) {
        left -= partition_count;
      } else {
        total += capacities[i];
      }
    }
    share_of_one = total > 0 ? left / total : 0;
    for (size_t i = 0; i < capacities.size(); ++i) {
      if (whole[i] || share_of_one * capacities[i] < partition_count) continue;
      whole[i] = true;
      changed = true;
    }
  }
  std::vector<uint32_t> limits;
  for (size_t i = 0; i < capacities.size(); ++i) {
    const double full = std::ceil(kFull * share_of_one * capacities[i]);
    limits.push_back(whole[i] || full >= partition_count
                         ? partition_count
                         : static_cast<uint32_t>(full));
  }
  return limits;
}

// Chooses the owners of one layer's partitions, in order, within the limits.
class LayerPlacer {
 public:
  LayerPlacer(absl::Span<const uint64_t> member_keys,
              absl::Span<const double> capacities, const PlacementLayer& layer,
              uint32_t owners)
      : member_keys_(member_keys),
        capacities_(capacities),
        layer_(layer),
        owners_(owners),
        free_(Limits(capacities, layer.partition_count, owners)),
        costs_(capacities.size()) {}

  std::vector<uint32_t> Place() {
    std::vector<uint32_t> chosen;
    chosen.reserve(size_t{layer_.partition_count} * owners_);
    for (uint32_t p = 0; p < layer_.partition_count; ++p) {
      Score(p);
      PlaceOne(layer_.partition_count - p, chosen);
    }
    return chosen;
  }

 private:
  // Rendezvous: -ln(u) / capacity is least for each member in proportion to
  // its capacity, and changes for no other member when one comes or goes.
  void Score(uint32_t partition) {
    const uint64_t ref =
        (uint64_t{ToInt(layer_.layer_id)} << 32) | uint64_t{partition};
    for (size_t i = 0; i < costs_.size(); ++i) {
      const uint64_t hash =
          XXH3_64bits_withSeed(&ref, sizeof(ref), member_keys_[i]);
      costs_[i] = NegativeLog(hash) / capacities_[i];
    }
  }

  // `left`: partitions not placed yet, this one included.
  //
  // A member can use min(free, left) of its free places, and while the sum of
  // these is at least left * owners, the rest can be placed on distinct
  // owners. Passing over a member with free >= left costs the sum one place
  // for nothing, so no more of those are passed over than there are to spare.
  void PlaceOne(uint32_t left, std::vector<uint32_t>& chosen) {
    uint64_t usable = 0;
    uint64_t tight = 0;  // members with free >= left
    for (const uint32_t free : free_) {
      usable += std::min(free, left);
      if (free >= left) ++tight;
    }
    const uint64_t wanted = uint64_t{left} * owners_;
    ENGRAM_CHECK(usable >= wanted);
    const uint64_t spare = usable - wanted;
    uint64_t must_be_tight = tight > spare ? tight - spare : 0;
    for (uint32_t open = owners_; open > 0; --open) {
      const uint32_t least_free = must_be_tight >= open ? left : 1;
      const uint32_t best = Cheapest(least_free);
      if (free_[best] >= left && must_be_tight > 0) --must_be_tight;
      chosen.push_back(best);
      costs_[best] = kChosen;
    }
    for (auto owner = chosen.end() - owners_; owner != chosen.end(); ++owner) {
      --free_[*owner];
    }
  }

  // Equal costs: the first by name.
  uint32_t Cheapest(uint32_t least_free) const {
    size_t best = costs_.size();
    double best_cost = kChosen;
    for (size_t i = 0; i < costs_.size(); ++i) {
      if (free_[i] < least_free || costs_[i] >= best_cost) continue;
      best = i;
      best_cost = costs_[i];
    }
    ENGRAM_CHECK(best < costs_.size());
    return static_cast<uint32_t>(best);
  }

  static constexpr double kChosen = std::numeric_limits<double>::infinity();

  const absl::Span<const uint64_t> member_keys_;
  const absl::Span<const double> capacities_;
  const PlacementLayer layer_;
  const uint32_t owners_;
  std::vector<uint32_t> free_;  // partitions a member may still get
  std::vector<double> costs_;   // of this partition; kChosen: taken already
};

}  // namespace

absl::StatusOr<Placement> Placement::Create(Options options) {
  std::sort(options.members.begin(), options.members.end(),
            [](const PlacementMember& a, const PlacementMember& b) {
              return a.name < b.name;
            });
  ENGRAM_RETURN_IF_ERROR(CheckOptions(options));

  Placement placement;
  placement.layers_ = std::move(options.layers);
  placement.members_ = std::move(options.members);
  placement.owners_per_partition_ = std::min(
      options.replicas, static_cast<uint32_t>(placement.members_.size()));

  const uint64_t table_key =
      XXH3_64bits(options.table.data(), options.table.size());
  std::vector<uint64_t> member_keys;
  for (const PlacementMember& member : placement.members_) {
    member_keys.push_back(XXH3_64bits_withSeed(member.name.data(),
                                               member.name.size(), table_key));
  }
  const std::vector<double> capacities = RelativeCapacities(placement.members_);
  for (const PlacementLayer& layer : placement.layers_) {
    LayerPlacer placer(member_keys, capacities, layer,
                       placement.owners_per_partition_);
    placement.owners_.push_back(placer.Place());
  }
  return placement;
}

absl::Span<const uint32_t> Placement::Owners(size_t layer_index,
                                             PartitionId partition) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  ENGRAM_CHECK(ToInt(partition) < layers_[layer_index].partition_count);
  return absl::MakeConstSpan(owners_[layer_index])
      .subspan(size_t{ToInt(partition)} * owners_per_partition_,
               owners_per_partition_);
}

absl::StatusOr<std::vector<PartitionRef>> Placement::OwnedBy(
    absl::string_view member_name) const {
  const auto member = std::find_if(
      members_.begin(), members_.end(),
      [&](const PlacementMember& m) { return m.name == member_name; });
  if (member == members_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no server of this placement is named ", member_name));
  }
  const auto index = static_cast<uint32_t>(member - members_.begin());
  std::vector<PartitionRef> owned;
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (uint32_t p = 0; p < layers_[layer].partition_count; ++p) {
      const absl::Span<const uint32_t> owners = Owners(layer, PartitionId{p});
      if (std::find(owners.begin(), owners.end(), index) != owners.end()) {
        owned.push_back({layers_[layer].layer_id, PartitionId{p}});
      }
    }
  }
  std::sort(owned.begin(), owned.end());
  return owned;
}

}  // namespace engram
