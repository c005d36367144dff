#include "compute/worker/step_request.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

// A repeated bool as the mask bytes that the model takes.
absl::Span<const uint8_t> MaskBytes(
    const google::protobuf::RepeatedField<bool>& mask) {
  static_assert(sizeof(bool) == 1);
  return {reinterpret_cast<const uint8_t*>(mask.data()),
          static_cast<size_t>(mask.size())};
}

TokenChunk ChunkOf(const v1::Sequence& sequence) {
  return {.start_position = sequence.start_position(),
          .tokens = sequence.token_ids(),
          .lookback = sequence.lookback(),
          .mask = MaskBytes(sequence.mask()),
          .lookback_mask = MaskBytes(sequence.lookback_mask())};
}

}  // namespace

uint64_t TokenStreamBytes(const EngramConfig& config, StreamDtype dtype) {
  return uint64_t{config.hc_mult} * config.dim * StreamBytes(dtype);
}

absl::StatusOr<StepRequest> StepRequest::Create(const EngramBlock& block,
                                                uint64_t max_tokens,
                                                StepSpec spec) {
  StepRequest request;
  ENGRAM_RETURN_IF_ERROR(request.TakeKinds(spec.dtype, spec.return_kind));
  ENGRAM_RETURN_IF_ERROR(request.TakeLayers(block, spec.layers));
  ENGRAM_RETURN_IF_ERROR(request.TakeLayerTimeouts(block, spec.layer_timeouts));
  ENGRAM_RETURN_IF_ERROR(
      request.TakeSequences(block, max_tokens, std::move(spec.sequences)));
  request.JoinMasks();
  return request;
}

TokenChunk StepRequest::sequence(size_t index) const {
  return ChunkOf(sequences_[static_cast<int>(index)]);
}

absl::Status StepRequest::TakeKinds(v1::StreamDtype dtype,
                                    v1::ReturnKind return_kind) {
  switch (dtype) {
    case v1::STREAM_DTYPE_BF16:
      dtype_ = StreamDtype::kBf16;
      break;
    case v1::STREAM_DTYPE_F32:
      dtype_ = StreamDtype::kF32;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("dtype is ", static_cast<int>(dtype),
                       "; it must be 1 (bf16) or 2 ", "(float32)"));
  }
  switch (return_kind) {
    case v1::RETURN_KIND_STREAMS:
      output_ = StepOutput::kStreams;
      break;
    case v1::RETURN_KIND_CONTRIBUTION:
      output_ = StepOutput::kContribution;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("return_kind is ", static_cast<int>(return_kind),
                       "; it must be 1 (streams) or 2 (contribution)"));
  }
  return absl::OkStatus();
}

absl::Status StepRequest::TakeLayers(const EngramBlock& block,
                                     absl::Span<const LayerId> layers) {
  if (layers.empty()) {
    return absl::InvalidArgumentError("the step names no layer");
  }
  for (const LayerId layer : layers) {
    const absl::StatusOr<size_t> index = block.layout().IndexOf(layer);
    if (!index.ok()) {
      return MakeError(
          ErrorReason::kUnknownLayer,
          absl::StrCat("layer ", ToInt(layer), " has no Engram; layers are ",
                       absl::StrJoin(block.config().layer_ids, ", ")),
          {{"layer", absl::StrCat(ToInt(layer))}});
    }
    layer_indices_.push_back(*index);
  }
  std::sort(layer_indices_.begin(), layer_indices_.end());
  const auto twice =
      std::adjacent_find(layer_indices_.begin(), layer_indices_.end());
  if (twice != layer_indices_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", block.config().layer_ids[*twice],
                     " stands twice in one step"));
  }
  return absl::OkStatus();
}

absl::Status StepRequest::TakeLayerTimeouts(
    const EngramBlock& block,
    absl::Span<const StepSpec::LayerTimeout> timeouts) {
  rows_timeouts_.assign(layer_indices_.size(), absl::InfiniteDuration());
  for (const StepSpec::LayerTimeout& timeout : timeouts) {
    const uint32_t id = ToInt(timeout.layer);
    const auto index = block.layout().IndexOf(timeout.layer);
    const auto found = !index.ok()
                           ? layer_indices_.end()
                           : std::lower_bound(layer_indices_.begin(),
                                              layer_indices_.end(), *index);
    if (found == layer_indices_.end() || *found != *index) {
      return MakeError(
          ErrorReason::kUnknownLayer,
          absl::StrCat("layer_timeouts has layer ", id,
                       ", which is not among the layers of the step"),
          {{"layer", absl::StrCat(id)}});
    }
    absl::Duration& taken = rows_timeouts_[found - layer_indices_.begin()];
    if (taken != absl::InfiniteDuration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", id, " stands twice in layer_timeouts"));
    }
    if (timeout.timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer_timeouts gives layer ", id, " ",
          absl::FormatDuration(timeout.timeout), "; it must be above 0"));
    }
    taken = timeout.timeout;
  }
  return absl::OkStatus();
}

absl::Status StepRequest::TakeSequences(
    const EngramBlock& block, uint64_t max_tokens,
    google::protobuf::RepeatedPtrField<v1::Sequence> sequences) {
  sequences_ = std::move(sequences);
  for (const v1::Sequence& sequence : sequences_) {
    tokens_ += static_cast<uint64_t>(sequence.token_ids_size());
  }
  if (tokens_ == 0) {
    return absl::InvalidArgumentError("the step has no token");
  }
  if (tokens_ > max_tokens) {
    return MakeError(ErrorReason::kTooLarge,
                     absl::StrCat("the step has ", tokens_,
                                  " tokens; the limit is ", max_tokens),
                     {{"what", "tokens"},
                      {"value", absl::StrCat(tokens_)},
                      {"limit", absl::StrCat(max_tokens)}});
  }
  for (int i = 0; i < sequences_.size(); ++i) {
    const absl::Status status = block.hasher().Check(ChunkOf(sequences_[i]));
    if (!status.ok()) return Annotate(status, absl::StrCat("sequence ", i));
  }
  return absl::OkStatus();
}

void StepRequest::JoinMasks() {
  const bool any_dead =
      std::any_of(sequences_.begin(), sequences_.end(), [](const auto& s) {
        return std::find(s.mask().begin(), s.mask().end(), false) !=
               s.mask().end();
      });
  if (!any_dead) return;
  mask_.reserve(tokens_);
  live_before_.reserve(tokens_ + 1);
  live_before_.push_back(0);
  for (const v1::Sequence& sequence : sequences_) {
    for (int i = 0; i < sequence.token_ids_size(); ++i) {
      const bool live = sequence.mask().empty() || sequence.mask(i);
      mask_.push_back(live ? 1 : 0);
      live_before_.push_back(live_before_.back() + (live ? 1 : 0));
    }
  }
}

}  // namespace engram
