#ifndef ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/ids.h"
#include "table_server/tier/row_fetch.h"

namespace engram {

// Where a server's partitions live. What it holds of a partition never changes
// from when the partition comes into the server's PartitionSet until, after it
// was dropped there, the leases from before have ended.
//
// Rows are had in two steps, so that no thread ever waits for one: CopyRows
// gives what is at hand, Fetch gets the rest and tells when it is there.
//
// Thread safety: all methods may be called concurrently.
// Ownership: callers own `row_ids` and `out`. A tier keeps no reference but
// those of a fetch, until it is done.
class RowTier {
 public:
  virtual ~RowTier() = default;

  // Told once, on a thread of the tier and never from within Fetch, though
  // perhaps before that has returned. Must not block.
  using OnRows = absl::AnyInvocable<void(absl::Status)>;

  // Copies the packed bytes of row_ids[i] to the i-th slot of `out`, for each
  // row that is at hand. Appends the indices i of all others to `misses`,
  // ascending; what is in their slots is unspecified. Does not wait.
  //
  // REQUIRES: every row is of a partition that the PartitionSet held under a
  //           lease that still lasts; out.size() == row_ids.size() *
  //           row_bytes().
  // Returns OK; otherwise `out` is unspecified.
  virtual absl::Status CopyRows(size_t layer_index,
                                absl::Span<const RowId> row_ids,
                                absl::Span<std::byte> out,
                                std::vector<uint32_t>& misses) const = 0;

  // As CopyRows, for whoever asks for every row of a partition in turn: what a
  // tier keeps of rows that are asked for often does not heed it.
  virtual absl::Status ScanRows(size_t layer_index,
                                absl::Span<const RowId> row_ids,
                                absl::Span<std::byte> out,
                                std::vector<uint32_t>& misses) const {
    return CopyRows(layer_index, row_ids, out, misses);
  }

  // Gets rows that one of both missed, all at once. Does not wait. `done` hears
  // OK once each of them is in its slot. Otherwise what is in the slots is
  // unspecified, and it hears DATA_LOSS (found damaged), DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED (too many are being fetched) or UNAVAILABLE and others,
  // as the rows could not be read.
  //
  // REQUIRES: they were missed (a tier that misses nothing is not asked);
  //           their lease and all that `fetch` refers to last until `done` is
  //           told, whoever waits for it or does no more.
  virtual void Fetch(RowFetch /*fetch*/, OnRows /*done*/) const {
    ENGRAM_CHECK(!"a tier that misses nothing was asked to fetch");
  }

  virtual size_t row_bytes() const = 0;

  // Memory that holds rows, and how much of it lies in huge pages now. Reads
  // /proc: not for hot paths.
  virtual size_t memory_bytes() const = 0;
  virtual size_t huge_page_bytes() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_ROW_TIER_H_
