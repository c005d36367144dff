#include "engram_client/compute/step_messages.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/config.h"

namespace engram {
namespace {

absl::Status CheckSize(LayerId layer, absl::string_view what, uint64_t size,
                       uint64_t wanted, uint64_t tokens) {
  if (size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("layer ", ToInt(layer), ": ", what, " of ", size, "; for ",
                   tokens, " tokens it must be ", wanted));
}

// Copies a field of the answer, or says that it does not fit.
absl::Status CopyField(absl::string_view what, const std::string& from,
                       uint64_t wanted_bytes, void* to) {
  if (from.size() != wanted_bytes) {
    return absl::InternalError(absl::StrCat("the worker answered ", from.size(),
                                            " bytes of ", what, " where ",
                                            wanted_bytes, " belong"));
  }
  if (wanted_bytes > 0) std::memcpy(to, from.data(), wanted_bytes);
  return absl::OkStatus();
}

}  // namespace

StepShape ShapeOf(const ModelInfo& model,
                  absl::Span<const StepSequence> sequences, StepDtype dtype,
                  StepReturn what) {
  StepShape shape{.hc_mult = model.config.hc_mult,
                  .dim = model.config.dim,
                  .dtype = dtype,
                  .what = what};
  for (const StepSequence& sequence : sequences) {
    shape.tokens += sequence.token_ids.size();
  }
  return shape;
}

absl::Status CheckIo(const StepShape& shape, const StepLayerIo& io) {
  const uint64_t bytes = shape.tokens * shape.token_stream_bytes();
  ENGRAM_RETURN_IF_ERROR(CheckSize(io.layer, "bytes of streams",
                                   io.streams.size(), bytes, shape.tokens));
  if (shape.what == StepReturn::kStreams) {
    return CheckSize(io.layer, "bytes of streams_out", io.streams_out.size(),
                     bytes, shape.tokens);
  }
  ENGRAM_RETURN_IF_ERROR(CheckSize(io.layer, "gates", io.gate.size(),
                                   shape.tokens * shape.hc_mult, shape.tokens));
  return CheckSize(io.layer, "values", io.value.size(),
                   shape.tokens * shape.dim, shape.tokens);
}

void FillSequences(absl::Span<const StepSequence> sequences,
                   google::protobuf::RepeatedPtrField<v1::Sequence>* out) {
  for (const StepSequence& from : sequences) {
    v1::Sequence& to = *out->Add();
    to.set_start_position(from.start_position);
    to.mutable_token_ids()->Add(from.token_ids.begin(), from.token_ids.end());
    to.mutable_lookback()->Add(from.lookback.begin(), from.lookback.end());
    for (const uint8_t live : from.mask) to.add_mask(live != 0);
    for (const uint8_t live : from.lookback_mask) {
      to.add_lookback_mask(live != 0);
    }
  }
}

v1::StreamDtype ToProto(StepDtype dtype) {
  return dtype == StepDtype::kBf16 ? v1::STREAM_DTYPE_BF16
                                   : v1::STREAM_DTYPE_F32;
}

v1::ReturnKind ToProto(StepReturn what) {
  return what == StepReturn::kStreams ? v1::RETURN_KIND_STREAMS
                                      : v1::RETURN_KIND_CONTRIBUTION;
}

uint64_t TokensPerChunk(const StepShape& shape, uint64_t max_chunk_bytes) {
  return std::max<uint64_t>(1, max_chunk_bytes / shape.token_stream_bytes());
}

absl::Status CopyResult(const StepShape& shape, const v1::LayerResult& result,
                        uint64_t first_token, uint64_t token_count,
                        const StepLayerIo& io) {
  if (result.layer_id() != ToInt(io.layer)) {
    return absl::InternalError(absl::StrCat("the worker answered layer ",
                                            result.layer_id(), " for layer ",
                                            ToInt(io.layer)));
  }
  if (shape.what == StepReturn::kStreams) {
    const uint64_t token_bytes = shape.token_stream_bytes();
    return CopyField("streams", result.streams(), token_count * token_bytes,
                     io.streams_out.data() + first_token * token_bytes);
  }
  ENGRAM_RETURN_IF_ERROR(
      CopyField("gates", result.gate(), token_count * shape.token_gate_bytes(),
                io.gate.data() + first_token * shape.hc_mult));
  return CopyField("values", result.value(),
                   token_count * shape.token_value_bytes(),
                   io.value.data() + first_token * shape.dim);
}

absl::StatusOr<ModelInfo> ToModelInfo(const v1::GetModelResponse& response) {
  ModelInfo model;
  model.version = response.version();
  ENGRAM_ASSIGN_OR_RETURN(model.config, ParseConfig(response.config_json()));
  for (const uint32_t layer : response.layer_ids()) {
    model.layers.push_back(LayerId{layer});
  }
  model.max_tokens_per_step = response.max_tokens_per_step();
  model.max_chunk_bytes = response.max_chunk_bytes();
  if (model.version.empty() || model.layers.empty() ||
      model.max_chunk_bytes == 0) {
    return absl::InternalError(
        "the worker named no table version, no layer or no chunk size");
  }
  return model;
}

}  // namespace engram
