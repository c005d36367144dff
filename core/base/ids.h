#ifndef ENGRAM_CORE_BASE_IDS_H_
#define ENGRAM_CORE_BASE_IDS_H_

#include <cstdint>

namespace engram {

// Index of a transformer layer that has an Engram, as in config.json
// (`engram_layer_ids`: 1 and 14 in V4.1).
enum class LayerId : uint32_t {};

// Index of a partition of one layer: row id / partition_rows.
enum class PartitionId : uint32_t {};

// Row of one layer's table, column offset included. Plain uint32_t where many
// stand in a row: the wire carries fixed32 and the hash writes them straight.
using RowId = uint32_t;

constexpr uint32_t ToInt(LayerId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t ToInt(PartitionId id) { return static_cast<uint32_t>(id); }

// One partition of one layer.
struct PartitionRef {
  LayerId layer;
  PartitionId partition;

  friend bool operator==(const PartitionRef&, const PartitionRef&) = default;
  // clang-tidy 14 takes the comparison with 0 in here for a null pointer.
  friend auto operator<=>(const PartitionRef&,
                          const PartitionRef&) = default;  // NOLINT
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_IDS_H_
