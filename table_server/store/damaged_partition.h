#ifndef ENGRAM_TABLE_SERVER_STORE_DAMAGED_PARTITION_H_
#define ENGRAM_TABLE_SERVER_STORE_DAMAGED_PARTITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/ids.h"

// The partition whose copy is damaged or gone, as an error has it beside its
// message.

namespace engram {

inline constexpr absl::string_view kDamagedPartition =
    "engram/damaged-partition";

inline absl::Status WithDamagedPartition(absl::Status status,
                                         const PartitionRef& ref) {
  status.SetPayload(
      kDamagedPartition,
      absl::Cord(absl::StrCat(ToInt(ref.layer), "/", ToInt(ref.partition))));
  return status;
}

// Nothing: it names none.
inline std::optional<PartitionRef> DamagedPartitionOf(
    const absl::Status& status) {
  const auto payload = status.GetPayload(kDamagedPartition);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, '/');
  uint32_t layer = 0;
  uint32_t partition = 0;
  if (!absl::SimpleAtoi(parts.first, &layer) ||
      !absl::SimpleAtoi(parts.second, &partition)) {
    return std::nullopt;
  }
  return PartitionRef{LayerId{layer}, PartitionId{partition}};
}

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_DAMAGED_PARTITION_H_
