#ifndef ENGRAM_TABLE_SERVER_GATHER_PARTITION_READER_H_
#define ENGRAM_TABLE_SERVER_GATHER_PARTITION_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/lease_epochs.h"
#include "core/model/manifest.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Rows [next_row, end_row) of one partition, by their ids in the layer.
struct RowRange {
  size_t layer_index = 0;
  PartitionRef ref{};
  uint64_t next_row = 0;
  uint64_t end_row = 0;

  uint64_t size() const { return end_row - next_row; }
};

// Rows of a partition that have to be fetched, and what keeps them where they
// are until then. Move-only.
struct MissedRange {
  std::vector<RowId> row_ids;
  RowFetch fetch;  // of row_ids
  LeaseEpochs::Lease lease;

  bool empty() const { return fetch.wanted.empty(); }
};

// Reads partitions from one end to the other, for servers that copy them. No
// lease is kept between two copies: however slow the reader is, it holds up
// nobody who frees memory. A fetch keeps one until it is done.
//
// Thread safety: all methods may be called concurrently.
class PartitionReader {
 public:
  struct Options {
    std::string server_name;     // for errors
    absl::Duration retry_after;  // of OVERLOADED
  };

  // All must outlive the reader.
  PartitionReader(const Manifest& manifest, const PartitionSet& partitions,
                  const RowTier& tier, Options options);

  // What is left of a partition from `offset_bytes` on; nothing at its end.
  // WRONG_TABLE, UNKNOWN_LAYER or PARTITION_NOT_HERE; OUT_OF_RANGE: no such
  // partition, or an offset beyond it; INVALID_ARGUMENT: an offset within a
  // row.
  absl::StatusOr<RowRange> Check(absl::string_view version,
                                 const PartitionRef& ref,
                                 uint64_t offset_bytes) const;

  // Copies those of the next out.size() / row_bytes rows that are at hand, and
  // moves the range behind all of them; the others are in the result.
  // PARTITION_NOT_HERE: it has been given up meanwhile; errors of the tier.
  // Then `out` is unspecified. REQUIRES: the rows are in the range.
  absl::StatusOr<MissedRange> Copy(RowRange& range,
                                   absl::Span<std::byte> out) const;

  // Gets what a Copy missed. Does not wait: `done` as RowTier has it, with the
  // errors of FetchError. `out` stays until then. REQUIRES: not empty.
  void Fetch(MissedRange missed, absl::Time deadline,
             RowTier::OnRows done) const;

  size_t row_bytes() const { return row_bytes_; }

 private:
  absl::Status CheckHere(size_t layer_index, const PartitionRef& ref) const;

  const Manifest& manifest_;
  const PartitionSet& partitions_;
  const RowTier& tier_;
  const Options options_;
  const size_t row_bytes_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_PARTITION_READER_H_
