#ifndef ENGRAM_COMPUTE_BLOCK_STEP_SPANS_H_
#define ENGRAM_COMPUTE_BLOCK_STEP_SPANS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/gate/gate.h"
#include "core/model/config.h"
#include "core/model/row_format.h"

namespace engram {

// INVALID_ARGUMENT unless the layer is one of the model's.
absl::Status CheckLayerIndex(size_t layer_index, size_t layer_count);

// What a caller hands to EngramBlock::Forward.
struct StepInputs {
  StreamDtype dtype = StreamDtype::kBf16;
  absl::Span<const std::byte> packed_rows;  // of the live tokens
  absl::Span<const std::byte> streams;
  absl::Span<const uint8_t> mask;  // empty: all live
};

// The spans of one Forward, checked against the model and each other, and
// which of its tokens are live. Blocks compute live tokens only: these have
// rows, dead ones are the same for every block.
//
// Immutable; points at the caller's memory.
class StepSpans {
 public:
  // INVALID_ARGUMENT names the size that does not fit; nothing was written.
  static absl::StatusOr<StepSpans> Create(const EngramConfig& config,
                                          const RowFormat& row_format,
                                          const StepInputs& inputs,
                                          const BlockOutputs& outputs);

  StreamDtype dtype() const { return inputs_.dtype; }
  const BlockOutputs& outputs() const { return outputs_; }
  size_t tokens() const { return tokens_; }
  // Tokens that have rows, ascending.
  absl::Span<const size_t> live() const { return live_; }

  // Of one token.
  size_t stream_bytes() const { return stream_bytes_; }
  size_t row_bytes() const { return row_bytes_; }

  // Packed rows of live()[first], ..., live()[first + count - 1].
  absl::Span<const std::byte> Rows(size_t first, size_t count) const {
    return inputs_.packed_rows.subspan(first * row_bytes_, count * row_bytes_);
  }
  absl::Span<const std::byte> Streams(size_t token) const {
    return inputs_.streams.subspan(token * stream_bytes_, stream_bytes_);
  }
  // The part of one of outputs() that belongs to a token; empty if the caller
  // does not want it.
  template <typename T>
  absl::Span<T> Part(absl::Span<T> output, size_t token) const {
    const size_t width = output.size() / tokens_;
    return output.subspan(token * width, width);
  }

  // Streams as they came, +0 for all else.
  void WriteDeadTokens() const;

 private:
  StepSpans(const StepInputs& inputs, const BlockOutputs& outputs)
      : inputs_(inputs), outputs_(outputs) {}
  void WriteDeadToken(size_t token) const;

  StepInputs inputs_;
  BlockOutputs outputs_;
  size_t tokens_ = 0;
  size_t stream_bytes_ = 0;
  size_t row_bytes_ = 0;
  std::vector<size_t> live_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_STEP_SPANS_H_
