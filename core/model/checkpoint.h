#ifndef ENGRAM_CORE_MODEL_CHECKPOINT_H_
#define ENGRAM_CORE_MODEL_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/row_format.h"
#include "core/model/safetensors.h"

namespace engram {

// The Engram tensors of one layer, `layers.N.engram.*` of the checkpoint.
struct LayerTensors {
  TensorView embed_weight;  // F8_E4M3 [rows, head_dim]
  TensorView embed_scale;   // F8_E8M0 [rows, head_dim / 32]
  TensorView wkv_weight;    // F8_E4M3 [dim * (hc + 1), columns * head_dim]
  TensorView wkv_scale;     // F8_E8M0 [ceil(out / 32), in / 32]
  TensorView q_weight;      // BF16 [hc, dim]
  TensorView k_weight;      // BF16 [hc, dim]
};

// Bits of a packed row that no sound checkpoint has.
struct RowDefects {
  uint64_t nan_codes = 0;   // 0x7F, 0xFF
  uint64_t nan_scales = 0;  // 255
  bool any() const { return nan_codes > 0 || nan_scales > 0; }
};

// A checkpoint directory: config.json, model.safetensors.index.json (or one
// model.safetensors), safetensors files. Files are mapped; of their data only
// Engram tensors are ever touched.
//
// Immutable. Thread safety: all methods may be called concurrently.
class Checkpoint {
 public:
  // INVALID_ARGUMENT or NOT_FOUND naming file and tensor: a missing layer or
  // file, a tensor in two of the files that hold Engram tensors (no other is
  // opened) or in another than the index says, a shape or dtype that the
  // config does not give, a wrong row count.
  static absl::StatusOr<Checkpoint> Open(const std::string& dir);

  const std::string& dir() const { return dir_; }
  const EngramConfig& config() const { return config_; }
  const EngramLayout& layout() const { return layout_; }
  const RowFormat& row_format() const { return row_format_; }
  // In the order of layout().layers().
  absl::Span<const LayerTensors> layers() const { return layers_; }

  // Packs rows [first_row, first_row + n) into `out` (n = out.size() /
  // row_bytes), codes and scales interleaved as RowFormat says. One pass, no
  // allocation. OUT_OF_RANGE; DATA_LOSS when a file was truncated meanwhile.
  absl::Status PackRows(size_t layer_index, uint64_t first_row,
                        absl::Span<std::byte> out) const;

  // The same for scattered rows: row_ids[i] to the i-th slot of `out`.
  absl::Status GatherRows(size_t layer_index, absl::Span<const RowId> row_ids,
                          absl::Span<std::byte> out) const;

 private:
  std::string dir_;
  EngramConfig config_;
  EngramLayout layout_;
  RowFormat row_format_;
  std::vector<LayerTensors> layers_;
};

// Counts the NaN codes and scales among packed rows.
RowDefects CountDefects(const RowFormat& format,
                        absl::Span<const std::byte> packed_rows);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_CHECKPOINT_H_
