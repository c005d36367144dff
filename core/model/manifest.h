#ifndef ENGRAM_CORE_MODEL_MANIFEST_H_
#define ENGRAM_CORE_MODEL_MANIFEST_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"
#include "core/model/row_format.h"

namespace engram {

inline constexpr char kManifestFileName[] = "engram_manifest.json";

// XXH3-128 of a partition's packed rows, canonical (big-endian) bytes.
using PartitionDigest = std::array<uint8_t, 16>;
PartitionDigest DigestOf(absl::Span<const std::byte> packed_rows);

struct ManifestLayer {
  LayerId layer_id;
  uint64_t row_count = 0;
  // One a partition. Empty for a synthetic table, whose rows are computed.
  std::vector<PartitionDigest> digests;
};

// Identity of a table: what engram_manifest.json says. The table version id is
// the SHA-256 of the file's bytes, so they are written once and never
// reformatted. Immutable once made.
class Manifest {
 public:
  // Text of a manifest:
  //
  //   {"format": "engram-manifest/1", "table": "engram",
  //    "source": "checkpoint", "config": {...}, "row_format": {"code_dtype":
  //    "F8_E4M3", "scale_dtype": "F8_E8M0", "width": 256, "block_size": 32},
  //    "partition_rows": 65536, "layers": [{"layer_id": 1, "row_count":
  //    384006166, "digests": ["32 hex digits", ...]}, ...]}
  //
  // INVALID_ARGUMENT: not one, unsupported format or row format, a partition
  // size that CheckPartitionRows refuses, layers or rows that the config does
  // not give, a digest count other than the partition count.
  static absl::StatusOr<Manifest> Parse(absl::string_view json);
  static absl::StatusOr<Manifest> Load(const std::string& path);

  // Makes the canonical text of these values and parses it. `source` is
  // "checkpoint" or "synthetic:SEED"; a synthetic one has no digests.
  static absl::StatusOr<Manifest> Create(const EngramConfig& config,
                                         const RowFormat& row_format,
                                         uint64_t partition_rows,
                                         std::vector<ManifestLayer> layers,
                                         absl::string_view source);

  const std::string& version() const { return version_; }  // 64 hex digits
  const std::string& json() const { return json_; }
  const std::string& table() const { return table_; }  // of any version
  const std::string& source() const { return source_; }
  const EngramConfig& config() const { return config_; }
  const RowFormat& row_format() const { return row_format_; }
  uint64_t partition_rows() const { return partition_rows_; }
  absl::Span<const ManifestLayer> layers() const { return layers_; }

  absl::StatusOr<size_t> IndexOf(LayerId layer_id) const;
  uint32_t partition_count(size_t layer_index) const;
  // Of every layer, in order.
  std::vector<std::pair<LayerId, uint32_t>> PartitionCounts() const;
  // Rows of one partition: partition_rows, fewer in the last.
  uint64_t RowsIn(size_t layer_index, PartitionId partition) const;

  absl::Status Save(const std::string& path) const;

 private:
  std::string version_;
  std::string json_;
  std::string table_;
  std::string source_;
  EngramConfig config_;
  RowFormat row_format_;
  uint64_t partition_rows_ = 0;
  std::vector<ManifestLayer> layers_;
};

// 2^16, or the largest power of two that gives every layer of `row_counts` at
// least 64 partitions (1 where a layer has fewer than 64 rows).
uint64_t DefaultPartitionRows(absl::Span<const uint64_t> row_counts);

// INVALID_ARGUMENT: not a power of two within 1 .. 2^32, or a layer would have
// more than 2^20 partitions.
absl::Status CheckPartitionRows(uint64_t partition_rows,
                                absl::Span<const uint64_t> row_counts);

struct BuildManifestOptions {
  uint64_t partition_rows = 0;  // 0: DefaultPartitionRows
  bool allow_nan = false;       // take a checkpoint with NaN codes or scales
  size_t thread_count = 0;      // 0: one for each core
};

// Reads every Engram row of a checkpoint once, in parallel, and digests it.
// `progress(done_bytes, total_bytes)` is called from one thread at a time.
// INVALID_ARGUMENT: NaN codes or scales, counted by layer, unless allowed.
absl::StatusOr<Manifest> BuildManifest(
    const Checkpoint& checkpoint, const BuildManifestOptions& options,
    absl::FunctionRef<void(uint64_t, uint64_t)> progress);

// FAILED_PRECONDITION naming the difference when `manifest` was made for
// another checkpoint: config, row format or row counts differ. Digests are
// checked as partitions are loaded.
absl::Status CheckManifestMatches(const Manifest& manifest,
                                  const Checkpoint& checkpoint);
// The same of its source and its config alone, where `checkpoint` is a name.
absl::Status CheckManifestConfig(const Manifest& manifest,
                                 const EngramConfig& config,
                                 absl::string_view checkpoint);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_MANIFEST_H_
