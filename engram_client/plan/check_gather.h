#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_CHECK_GATHER_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_CHECK_GATHER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engram_client/table_client.h"

namespace engram {

// Most rows of one gather, all layers together, duplicates counted.
inline constexpr uint64_t kMaxRowsPerGather = uint64_t{1} << 24;

// Refuses, without a call, what no server could answer. UNKNOWN_LAYER;
// ROW_OUT_OF_RANGE naming the first such row; TOO_LARGE; INVALID_ARGUMENT: a
// layer twice, or a buffer that is not as large as its rows.
absl::Status CheckGather(const TableInfo& table,
                         absl::Span<const LayerGather> layers);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_CHECK_GATHER_H_
