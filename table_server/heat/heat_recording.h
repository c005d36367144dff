#ifndef ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDING_H_
#define ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"
#include "table_server/heat/frequent_rows.h"
#include "table_server/heat/sampled_rows.h"

namespace engram {

// How often rows are asked for, in bounded memory however many there are:
//
//   every lookup    counted by partition
//   sampled rows    each lookup of a row whose hash is low (SampledRows)
//   hot rows        one lookup in kLookupsPerHit, at random (FrequentRows)
//
// Memory: max_sampled_rows * 40 bytes, 1 MB for hot rows, 64 bytes for each
// partition of the table.
//
// Thread safety: all methods may be called concurrently. Only a row that is
// counted takes a lock, one of kParts, for as long as counting takes; now and
// then that is a look at all rows of the part.
class HeatRecording {
 public:
  static constexpr size_t kParts = 64;
  static constexpr size_t kMaxHotRows = 16384;
  static constexpr size_t kLookupsPerHit = 16;

  // REQUIRES: max_sampled_rows >= kParts; `manifest` outlives the recording.
  HeatRecording(const Manifest& manifest, size_t max_sampled_rows);

  // Each of these rows was asked for, as often as it stands here. Nothing
  // happens after Close. REQUIRES: rows of that layer.
  void Add(size_t layer_index, absl::Span<const RowId> row_ids);

  // Nothing changes any more once this returns, but the lookups by partition of
  // calls that are under way.
  void Close();

  uint64_t lookups() const;  // over all partitions
  uint64_t LookupsOf(size_t layer_index, uint32_t partition) const;

  size_t sampled_rows() const;
  size_t max_sampled_rows() const { return max_sampled_rows_; }
  // Every row up to this one that was asked for is in the sample.
  uint64_t last_hash() const;
  // The rows of one part of the sample with a hash of at most `last_hash`.
  std::vector<RowLookups> SampleOf(size_t part, uint64_t last_hash) const;

  // Hot rows with estimates of their lookups.
  std::vector<RowLookups> HotRowsOf(size_t part) const;
  // How many lookups a hot row may have more, and a row that is not among them
  // may have at all, but for the chance in which lookups are drawn.
  uint64_t hot_missed() const;

 private:
  struct alignas(128) Part {
    Part(size_t max_sampled_rows, size_t max_hot_rows)
        : sample(max_sampled_rows), hot(max_hot_rows) {}
    mutable Mutex mutex;
    bool closed ABSL_GUARDED_BY(mutex) = false;
    SampledRows sample ABSL_GUARDED_BY(mutex);
    FrequentRows hot ABSL_GUARDED_BY(mutex);
  };

  static size_t PartOf(uint64_t hash) { return hash % kParts; }
  void AddToSample(LayerId layer, absl::Span<const RowId> row_ids);
  void AddToHotRows(LayerId layer, absl::Span<const RowId> row_ids);

  const Manifest& manifest_;
  const size_t max_sampled_rows_;
  const int partition_shift_;
  std::vector<size_t> first_partition_;  // [layer]: where its counters start
  size_t partition_count_ = 0;           // of all layers
  // [stripe][partition]: a thread counts in a stripe of few others.
  std::vector<std::atomic<uint64_t>> partition_lookups_;
  std::vector<std::unique_ptr<Part>> parts_;
  // Of the part's sample, to be read without its lock. Together, since every
  // row is compared with one of them and they seldom change.
  std::array<std::atomic<uint64_t>, kParts> last_hashes_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDING_H_
