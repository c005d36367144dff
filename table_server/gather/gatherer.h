#ifndef ENGRAM_TABLE_SERVER_GATHER_GATHERER_H_
#define ENGRAM_TABLE_SERVER_GATHER_GATHERER_H_

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
#include "table_server/gather/call_guard.h"
#include "table_server/heat/heat_recorder.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Rows asked of one layer. `row_ids` is the caller's.
struct LayerRowIds {
  LayerId layer;
  absl::Span<const RowId> row_ids;
};

// A gather that was checked in full: copying it needs no more checks. Refers
// to the row ids it was made of. As long as it lives, no memory of a partition
// that the server drops is given back: it is to go as soon as its rows are
// copied. Move-only.
struct CheckedGather {
  struct Layer {
    size_t layer_index = 0;
    absl::Span<const RowId> row_ids;
  };
  std::vector<Layer> layers;
  uint64_t row_count = 0;
  LeaseEpochs::Lease lease;  // of the partitions
};

// TOO_LARGE when a gather has more layer entries than one may have: a hostile
// request may be all empty layers.
absl::Status CheckLayerCount(size_t layers);

// Turns row ids into packed rows, all or nothing.
//
// Thread safety: all methods may be called concurrently.
class Gatherer {
 public:
  struct Options {
    std::string server_name;  // for PARTITION_NOT_HERE
    uint64_t max_rows = 65536;
    absl::Duration retry_after;  // of OVERLOADED
    // Is told what is copied; must outlive the gatherer. Null: nobody is.
    HeatRecorder* heat = nullptr;
  };

  // All must outlive the gatherer.
  Gatherer(const Manifest& manifest, const PartitionSet& partitions,
           const RowTier& tier, Options options);

  // Checks a whole gather. WRONG_TABLE, TOO_LARGE, UNKNOWN_LAYER,
  // ROW_OUT_OF_RANGE or PARTITION_NOT_HERE, which lists every partition that
  // is missing.
  absl::StatusOr<CheckedGather> Check(
      absl::string_view version, absl::Span<const LayerRowIds> layers) const;

  // Copies rows [first_row, first_row + out.size() / row_bytes) of the gather,
  // counted over its layers, whether their partitions are still held or not:
  // all that are at hand. Appends the others to `missed`, by layers, without a
  // deadline.
  // CANCELLED or DEADLINE_EXCEEDED as `guard` says, errors of the tier; then
  // `out` is unspecified.
  // REQUIRES: the rows are in the gather.
  absl::Status Copy(const CheckedGather& gather, uint64_t first_row,
                    absl::Span<std::byte> out, const CallGuard& guard,
                    std::vector<RowFetch>& missed) const;

  // Gets what a Copy missed. Does not wait: `done` as RowTier has it, with the
  // errors of FetchError. The gather, its row ids and `out` stay until then.
  // REQUIRES: not empty.
  void Fetch(std::vector<RowFetch> missed, absl::Time deadline,
             RowTier::OnRows done) const;

  size_t row_bytes() const { return row_bytes_; }
  uint64_t max_rows() const { return options_.max_rows; }

 private:
  // Rows are 32 bits, but a partition may have more.
  uint32_t PartitionOf(RowId row) const {
    return static_cast<uint32_t>(uint64_t{row} >> partition_shift_);
  }
  absl::Status CheckRows(absl::Span<const CheckedGather::Layer> layers) const;
  absl::Status CopyLayer(RowFetch& fetch, const CallGuard& guard) const;
  absl::Status NotHere(absl::Span<const CheckedGather::Layer> layers) const;

  const Manifest& manifest_;
  const PartitionSet& partitions_;
  const RowTier& tier_;
  const Options options_;
  const size_t row_bytes_;
  const int partition_shift_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_GATHERER_H_
