#ifndef ENGRAM_CORE_WIRE_LAYER_PARTITIONS_H_
#define ENGRAM_CORE_WIRE_LAYER_PARTITIONS_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram/v1/errors.pb.h"

namespace engram {

using LayerPartitionsList =
    google::protobuf::RepeatedPtrField<v1::LayerPartitions>;

// A layer of the table and its number of partitions.
using LayerPartitionCount = std::pair<LayerId, uint32_t>;

// `partitions` as bitmaps, one for each layer that has any of them, in the
// order of `layers`. REQUIRES: they are of `layers`.
LayerPartitionsList ToLayerPartitions(
    absl::Span<const PartitionRef> partitions,
    absl::Span<const LayerPartitionCount> layers);

// And back, ascending. INVALID_ARGUMENT names the layer, what it has and what
// is wanted: a layer that `layers` lacks or that stands twice, another number
// of partitions, a bitmap of another size or with bits beyond its end.
absl::StatusOr<std::vector<PartitionRef>> FromLayerPartitions(
    const LayerPartitionsList& list,
    absl::Span<const LayerPartitionCount> layers);

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_LAYER_PARTITIONS_H_
