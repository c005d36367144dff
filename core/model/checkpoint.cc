#include "core/model/checkpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint_index.h"
#include "core/model/safetensors_header.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

// Side of the square of wkv.weight that shares one scale.
constexpr uint64_t kWkvBlock = 32;

constexpr const char* kTensorNames[] = {"embed.weight", "embed.scale",
                                        "wkv.weight",   "wkv.scale",
                                        "q_weight",     "k_weight"};
constexpr TensorView LayerTensors::*kTensorFields[] = {
    &LayerTensors::embed_weight, &LayerTensors::embed_scale,
    &LayerTensors::wkv_weight,   &LayerTensors::wkv_scale,
    &LayerTensors::q_weight,     &LayerTensors::k_weight};

std::string Describe(const TensorView& tensor) {
  return absl::StrCat(tensor.file->path(), ": tensor ", Quoted(tensor.name));
}

absl::Status CheckShape(const TensorView& tensor,
                        std::vector<uint64_t> wanted) {
  if (tensor.shape == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(tensor), " has the shape ", ShapeText(tensor.shape),
                   ", the config gives ", ShapeText(wanted)));
}

absl::Status CheckTensor(const TensorView& tensor, absl::string_view dtype,
                         std::vector<uint64_t> wanted) {
  if (tensor.dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(tensor), " has the dtype ", tensor.dtype,
                     ", this build supports ", dtype));
  }
  return CheckShape(tensor, std::move(wanted));
}

// The row format of a layer's table, whose shapes must be the layout's. The
// dtypes come first: they explain why another kind has other shapes.
absl::StatusOr<RowFormat> CheckTable(const LayerTensors& layer,
                                     uint64_t row_count, uint64_t head_dim) {
  const TensorView& weight = layer.embed_weight;
  const TensorView& scale = layer.embed_scale;
  const absl::StatusOr<RowFormat> supported =
      RowFormat::Create(weight.dtype, scale.dtype, head_dim, head_dim);
  if (!supported.ok()) return Annotate(supported.status(), Describe(weight));
  ENGRAM_RETURN_IF_ERROR(CheckShape(weight, {row_count, head_dim}));
  const bool has_scales = scale.shape.size() == 2 && scale.shape[1] > 0;
  const uint64_t scales = has_scales ? scale.shape[1] : 1;
  ENGRAM_RETURN_IF_ERROR(CheckShape(scale, {row_count, scales}));
  if (head_dim % scales != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(scale), " has ", scales,
        " scales a row, which do not divide its ", head_dim, " features"));
  }
  return RowFormat::Create(weight.dtype, scale.dtype, head_dim,
                           head_dim / scales);
}

absl::Status CheckWeights(const LayerTensors& layer,
                          const EngramConfig& config) {
  const uint64_t in = config.wkv_in();
  const uint64_t out = config.wkv_out();
  ENGRAM_RETURN_IF_ERROR(CheckTensor(layer.wkv_weight, "F8_E4M3", {out, in}));
  ENGRAM_RETURN_IF_ERROR(CheckTensor(
      layer.wkv_scale, "F8_E8M0",
      {(out + kWkvBlock - 1) / kWkvBlock, (in + kWkvBlock - 1) / kWkvBlock}));
  const std::vector<uint64_t> streams = {config.hc_mult, config.dim};
  ENGRAM_RETURN_IF_ERROR(CheckTensor(layer.q_weight, "BF16", streams));
  return CheckTensor(layer.k_weight, "BF16", streams);
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& dir) {
  Checkpoint checkpoint;
  checkpoint.dir_ = dir;
  ENGRAM_ASSIGN_OR_RETURN(checkpoint.config_,
                          LoadConfig(absl::StrCat(dir, "/config.json")));
  const EngramConfig& config = checkpoint.config_;
  absl::StatusOr<EngramLayout> layout = EngramLayout::Create(config);
  if (!layout.ok()) return Annotate(layout.status(), dir);
  checkpoint.layout_ = *std::move(layout);

  std::vector<std::string> names;
  for (const LayerLayout& layer : checkpoint.layout_.layers()) {
    for (const char* tensor : kTensorNames) {
      names.push_back(
          absl::StrCat("layers.", ToInt(layer.layer_id), ".engram.", tensor));
    }
  }
  ENGRAM_ASSIGN_OR_RETURN(std::vector<TensorView> tensors,
                          FindTensors(dir, names));

  auto next = tensors.begin();
  for (const LayerLayout& layer : checkpoint.layout_.layers()) {
    LayerTensors loaded;
    for (TensorView LayerTensors::*const field : kTensorFields) {
      loaded.*field = std::move(*next++);
    }
    ENGRAM_ASSIGN_OR_RETURN(
        const RowFormat format,
        CheckTable(loaded, layer.row_count, config.head_dim));
    if (checkpoint.layers_.empty()) checkpoint.row_format_ = format;
    if (format != checkpoint.row_format_) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(loaded.embed_scale), " has blocks of ", format.block_size,
          " features, the first layer of ", checkpoint.row_format_.block_size));
    }
    ENGRAM_RETURN_IF_ERROR(CheckWeights(loaded, config));
    checkpoint.layers_.push_back(std::move(loaded));
  }
  return checkpoint;
}

}  // namespace engram
