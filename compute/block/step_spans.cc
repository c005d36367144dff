#include "compute/block/step_spans.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

absl::Status CheckSize(absl::string_view what, size_t size, size_t wanted) {
  if (size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", size, " instead of ", wanted));
}

absl::Status CheckOutput(absl::string_view what, size_t size, size_t wanted) {
  return size == 0 ? absl::OkStatus() : CheckSize(what, size, wanted);
}

template <typename T>
void Zero(absl::Span<T> values) {
  std::fill(values.begin(), values.end(), T{0});
}

}  // namespace

absl::Status CheckLayerIndex(size_t layer_index, size_t layer_count) {
  if (layer_index < layer_count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "layer index ", layer_index, " of a model with ", layer_count));
}

absl::StatusOr<StepSpans> StepSpans::Create(const EngramConfig& config,
                                            const RowFormat& row_format,
                                            const StepInputs& inputs,
                                            const BlockOutputs& outputs) {
  StepSpans spans(inputs, outputs);
  spans.stream_bytes_ =
      size_t{config.hc_mult} * config.dim * StreamBytes(inputs.dtype);
  spans.row_bytes_ = config.columns() * row_format.row_bytes();
  const size_t tokens = inputs.streams.size() / spans.stream_bytes_;
  spans.tokens_ = tokens;
  ENGRAM_RETURN_IF_ERROR(CheckSize("bytes of streams", inputs.streams.size(),
                                   tokens * spans.stream_bytes_));
  if (!inputs.mask.empty()) {
    ENGRAM_RETURN_IF_ERROR(
        CheckSize("mask entries", inputs.mask.size(), tokens));
  }
  ENGRAM_RETURN_IF_ERROR(CheckOutput("bytes of output streams",
                                     outputs.streams.size(),
                                     inputs.streams.size()));
  ENGRAM_RETURN_IF_ERROR(CheckOutput("output gates", outputs.gate.size(),
                                     tokens * config.hc_mult));
  ENGRAM_RETURN_IF_ERROR(
      CheckOutput("output values", outputs.value.size(), tokens * config.dim));
  ENGRAM_RETURN_IF_ERROR(
      CheckOutput("output kv", outputs.kv.size(), tokens * config.wkv_out()));
  spans.live_.reserve(tokens);
  for (size_t token = 0; token < tokens; ++token) {
    if (inputs.mask.empty() || inputs.mask[token] != 0) {
      spans.live_.push_back(token);
    }
  }
  ENGRAM_RETURN_IF_ERROR(CheckSize(
      absl::StrCat("bytes of packed rows for ", spans.live_.size(),
                   " live tokens"),
      inputs.packed_rows.size(), spans.live_.size() * spans.row_bytes_));
  return spans;
}

void StepSpans::WriteDeadTokens() const {
  for (size_t token = 0; token < inputs_.mask.size(); ++token) {
    if (inputs_.mask[token] == 0) WriteDeadToken(token);
  }
}

void StepSpans::WriteDeadToken(size_t token) const {
  const absl::Span<std::byte> streams = Part(outputs_.streams, token);
  if (!streams.empty()) {
    // Output and input may be the same memory.
    std::memmove(streams.data(), Streams(token).data(), stream_bytes_);
  }
  Zero(Part(outputs_.gate, token));
  Zero(Part(outputs_.value, token));
  Zero(Part(outputs_.kv, token));
}

}  // namespace engram
