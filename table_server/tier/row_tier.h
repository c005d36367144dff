#ifndef ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// One place where a server's partitions live. What it holds of a partition
// never changes from when the partition comes into the server's PartitionSet
// until, after it was dropped there, the leases from before have ended.
//
// Thread safety: all methods may be called concurrently.
// Ownership: callers own `row_ids` and `out`; a tier keeps no reference.
class RowTier {
 public:
  virtual ~RowTier() = default;

  // Short name for logs: "host", "synthetic".
  virtual absl::string_view kind() const = 0;

  // Copies the packed bytes of row_ids[i] to the i-th slot of `out`.
  //
  // REQUIRES: every row is of a partition that the PartitionSet held under a
  //           lease that still lasts; out.size() == row_ids.size() *
  //           row_bytes().
  // Returns OK; otherwise `out` is unspecified.
  virtual absl::Status CopyRows(size_t layer_index,
                                absl::Span<const RowId> row_ids,
                                absl::Span<std::byte> out) const = 0;

  virtual size_t row_bytes() const = 0;

  // Memory that holds rows, and how much of it lies in huge pages now. Reads
  // /proc: not for hot paths.
  virtual size_t memory_bytes() const = 0;
  virtual size_t huge_page_bytes() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_
