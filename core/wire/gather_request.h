#ifndef ENGRAM_CORE_WIRE_GATHER_REQUEST_H_
#define ENGRAM_CORE_WIRE_GATHER_REQUEST_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// Rows of one layer; several runs in a row may be of the same layer.
struct RowRun {
  LayerId layer;
  absl::Span<const RowId> row_ids;
};

// v1::GatherStreamRequest, serialised in two parts that are the message one
// after another: a head, which is made when the request is sent, and the
// gather, which stays. Row ids are copied once.
//
// The gather: runs of one layer in a row become one v1::LayerRows. `out` has
// exactly GatherFieldSize bytes.
size_t GatherFieldSize(absl::string_view version, absl::Span<const RowRun> runs,
                       bool want_crc32c);
void WriteGatherField(absl::string_view version, absl::Span<const RowRun> runs,
                      bool want_crc32c, absl::Span<std::byte> out);

// Bytes of a message or of its head; `size` of them count.
struct ShortMessage {
  std::array<std::byte, 22> bytes;
  size_t size = 0;
};

ShortMessage GatherHead(uint64_t call_id, uint64_t timeout_us);
// The whole message.
ShortMessage CancelMessage(uint64_t call_id);

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_GATHER_REQUEST_H_
