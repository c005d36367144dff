#ifndef ENGRAM_CORE_WIRE_GATHER_CRC_H_
#define ENGRAM_CORE_WIRE_GATHER_CRC_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// The checksum of one gather, as table.proto defines it: CRC32C over the
// version, then per layer its id (u32 little-endian) and row ids (u32
// little-endian each), then the rows. It covers what was asked as well as what
// came, so that rows of another request are noticed too.
//
//   GatherCrc crc(version);
//   for (each layer asked) crc.AddLayer(layer, row_ids);
//   crc.AddRows(piece);  // once or in pieces, in order
//   crc.value();
class GatherCrc {
 public:
  explicit GatherCrc(absl::string_view version);

  void AddLayer(LayerId layer, absl::Span<const RowId> row_ids);
  void AddRows(absl::Span<const std::byte> rows);

  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_GATHER_CRC_H_
