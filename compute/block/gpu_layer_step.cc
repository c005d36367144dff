#include "compute/block/gpu_layer_step.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/block/layer_weights.h"
#include "compute/dequant/gpu_decode.h"
#include "compute/gate/gpu_gate.h"
#include "compute/project/fragment_layout.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

DecodedLayout LayoutFor(TokenLayout layout) {
  return layout == TokenLayout::kRowMajor ? DecodedLayout::kRowMajor
                                          : DecodedLayout::kFragments;
}

absl::Status CheckTokens(size_t tokens) {
  if (static_cast<uint32_t>(tokens) == tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a step of ", tokens, " tokens, at most ", ~uint32_t{0}));
}

}  // namespace

GpuLayerStep::GpuLayerStep(const EngramConfig& config,
                           const RowFormat& row_format,
                           std::unique_ptr<const GpuProjection> projection,
                           DeviceBuffer gate_weight)
    : config_(config),
      row_format_(row_format),
      projection_(std::move(projection)),
      gate_weight_(std::move(gate_weight)) {}

absl::StatusOr<std::unique_ptr<const GpuLayerStep>> GpuLayerStep::Create(
    const EngramConfig& config, const RowFormat& row_format,
    const Weights& weights, const Options& options, ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(
      std::unique_ptr<const GpuProjection> projection,
      GpuProjection::Create(
          weights.wkv,
          {.mode = options.projection, .max_tokens = options.max_tokens},
          pool));
  ENGRAM_ASSIGN_OR_RETURN(
      DeviceBuffer gate_weight,
      DeviceBuffer::UploadArray<float>(weights.gate.weight));
  return absl::WrapUnique(new GpuLayerStep(
      config, row_format, std::move(projection), std::move(gate_weight)));
}

absl::StatusOr<std::vector<std::unique_ptr<const GpuLayerStep>>>
GpuLayerStep::CreateAll(const Checkpoint& checkpoint, const Options& options,
                        ThreadPool* pool) {
  const EngramConfig& config = checkpoint.config();
  std::vector<std::unique_ptr<const GpuLayerStep>> layers;
  for (const LayerTensors& tensors : checkpoint.layers()) {
    ENGRAM_ASSIGN_OR_RETURN(const GateWeights gate,
                            ReadGateWeights(config, tensors));
    ENGRAM_ASSIGN_OR_RETURN(const WkvWeights wkv, ReadWkvWeights(tensors));
    auto layer = Create(config, checkpoint.row_format(),
                        {.gate = gate, .wkv = wkv.View(config)}, options, pool);
    ENGRAM_RETURN_IF_ERROR(Annotate(layer.status(), tensors.wkv_weight.name));
    layers.push_back(*std::move(layer));
  }
  return layers;
}

size_t GpuLayerStep::ValuesBytes(size_t tokens) const {
  return FragmentCount(tokens, config_.wkv_in()) * sizeof(uint16_t);
}

absl::Status GpuLayerStep::ProjectRows(const Rows& rows,
                                       GpuStreamHandle stream) const {
  ENGRAM_RETURN_IF_ERROR(CheckTokens(rows.tokens));
  ENGRAM_RETURN_IF_ERROR(
      DecodeOnGpu({.token_count = static_cast<uint32_t>(rows.tokens),
                   .columns = config_.columns(),
                   .width = row_format_.width,
                   .block_size = row_format_.block_size,
                   .rows = rows.packed,
                   .layout = LayoutFor(projection_->token_layout(rows.tokens)),
                   .out = rows.values},
                  stream));
  return projection_->Project(rows.values, rows.tokens, rows.kv, stream);
}

absl::Status GpuLayerStep::Gate(const Streams& streams,
                                GpuStreamHandle stream) const {
  ENGRAM_RETURN_IF_ERROR(CheckTokens(streams.tokens));
  return GateOnGpu({.dtype = streams.dtype,
                    .token_count = static_cast<uint32_t>(streams.tokens),
                    .hc_mult = config_.hc_mult,
                    .dim = config_.dim,
                    .norm_eps = static_cast<float>(config_.norm_eps),
                    .streams = streams.in,
                    .kv = streams.kv,
                    .live_index = streams.live_index,
                    .weight = gate_weight_.as<float>(),
                    .out_streams = streams.out,
                    .out_gate = streams.gate,
                    .out_value = streams.value},
                   stream);
}

}  // namespace engram
