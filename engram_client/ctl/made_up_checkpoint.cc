#include "engram_client/ctl/made_up_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/number_formats.h"
#include "core/model/presets.h"
#include "engram_client/ctl/made_up_bytes.h"

namespace engram::ctl {
namespace {

constexpr uint64_t kBlock = 32;  // features a scale, in rows and in wkv
constexpr uint64_t kSpecialRows = 6;

// Each tensor of each layer draws from a stream of its own.
enum class Part : uint64_t { kCodes, kScales, kWkv, kWkvScales, kQ, kK };
uint64_t StreamOf(LayerId layer, Part part) {
  return (uint64_t{ToInt(layer)} << 8) | static_cast<uint64_t>(part);
}

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Rows 0 .. 5: all zero, subnormals, a tiny scale, a large scale, a lone
// smallest value among -0, and (with SpecialScale) a small row.
uint8_t SpecialCode(uint64_t row, uint64_t column, uint8_t code) {
  switch (row) {
    case 0:
      return 0;
    case 1:
      return code & 0x87;
    case 4:
      return column == 0 ? 0x01 : 0x80;
    case 5:
      return code & 0xBF;
    default:
      return code;
  }
}

uint8_t SpecialScale(uint64_t row, uint8_t scale) {
  switch (row) {
    case 2:
      return 90;
    case 3:
      return 135;
    case 5:
      return 100;
    default:
      return scale;
  }
}

void FillCodes(uint64_t seed, uint64_t stream, uint64_t width, uint64_t offset,
               absl::Span<uint8_t> out) {
  FillRandom(seed, stream, offset, out);
  ReplaceNanCodes(out);
  const uint64_t special_end = kSpecialRows * width;
  for (uint64_t i = 0; i < out.size() && offset + i < special_end; ++i) {
    const uint64_t at = offset + i;
    out[i] = SpecialCode(at / width, at % width, out[i]);
  }
}

void FillScales(uint64_t seed, uint64_t stream, uint64_t scales_per_row,
                uint8_t lowered_by, uint64_t offset, absl::Span<uint8_t> out) {
  FillRandom(seed, stream, offset, out);
  SpreadOver(113 - lowered_by, 7, out);
  const uint64_t special_end = kSpecialRows * scales_per_row;
  for (uint64_t i = 0; i < out.size() && offset + i < special_end; ++i) {
    const uint64_t row = (offset + i) / scales_per_row;
    const auto raised = static_cast<uint8_t>(out[i] + lowered_by);
    out[i] = static_cast<uint8_t>(SpecialScale(row, raised) - lowered_by);
  }
}

// bf16 of [0.75, 1.25), as norm weights have.
void FillNormWeights(uint64_t seed, uint64_t stream, uint64_t offset,
                     absl::Span<uint8_t> out) {
  FillRandom(seed, stream, offset, out);
  for (size_t i = 0; i + 1 < out.size(); i += 2) {
    int16_t noise;
    std::memcpy(&noise, out.data() + i, sizeof(noise));
    const uint16_t weight =
        FloatToBf16(1.0F + 0.25F * static_cast<float>(noise) / 32768.0F);
    std::memcpy(out.data() + i, &weight, sizeof(weight));
  }
}

std::vector<uint64_t> RowsOf(const EngramLayout& layout) {
  std::vector<uint64_t> rows;
  for (const LayerLayout& layer : layout.layers()) {
    rows.push_back(layer.row_count);
  }
  return rows;
}

}  // namespace

absl::StatusOr<MadeUpModel> MakeUpModel(const std::string& preset,
                                        uint64_t engram_vocab_size,
                                        uint64_t seed) {
  MadeUpModel model;
  ENGRAM_ASSIGN_OR_RETURN(model.config, PresetConfig(preset));
  model.seed = seed;
  model.tiny_scale = preset == "tiny-scale";
  if (engram_vocab_size > 0) {
    if (engram_vocab_size > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vocab-size ", engram_vocab_size, " is above 2^32-1"));
    }
    model.config.engram_vocab_size = static_cast<uint32_t>(engram_vocab_size);
    model.config.num_embeddings.clear();
    ENGRAM_RETURN_IF_ERROR(ValidateConfig(model.config));
  }
  ENGRAM_ASSIGN_OR_RETURN(model.layout, EngramLayout::Create(model.config));
  model.config.num_embeddings = RowsOf(model.layout);
  return model;
}

std::vector<MadeUpTensor> MadeUpLayerTensors(const MadeUpModel& model,
                                             size_t layer_index) {
  const EngramConfig& config = model.config;
  const LayerLayout& layer = model.layout.layers()[layer_index];
  const uint64_t seed = model.seed;
  const uint64_t width = config.head_dim;
  const uint64_t row_scales = width / kBlock;
  const uint64_t in = config.wkv_in();
  const uint64_t out = config.wkv_out();
  const uint64_t hc = config.hc_mult;
  const uint64_t dim = config.dim;
  const uint8_t lowered_by = model.tiny_scale ? 20 : 0;
  const uint8_t first_wkv_scale = model.tiny_scale ? 134 : 114;
  const auto stream = [&](Part part) { return StreamOf(layer.layer_id, part); };
  const auto name = [&](const char* what) {
    return absl::StrCat("layers.", ToInt(layer.layer_id), ".engram.", what);
  };
  using Bytes = absl::Span<uint8_t>;

  std::vector<MadeUpTensor> tensors;
  tensors.push_back(
      {{name("embed.weight"), "F8_E4M3", {layer.row_count, width}},
       layer.row_count * width,
       [=, s = stream(Part::kCodes)](uint64_t offset, Bytes bytes) {
         FillCodes(seed, s, width, offset, bytes);
       }});
  tensors.push_back(
      {{name("embed.scale"), "F8_E8M0", {layer.row_count, row_scales}},
       layer.row_count * row_scales,
       [=, s = stream(Part::kScales)](uint64_t offset, Bytes bytes) {
         FillScales(seed, s, row_scales, lowered_by, offset, bytes);
       }});
  tensors.push_back({{name("wkv.weight"), "F8_E4M3", {out, in}},
                     out * in,
                     [=, s = stream(Part::kWkv)](uint64_t offset, Bytes bytes) {
                       FillRandom(seed, s, offset, bytes);
                       ReplaceNanCodes(bytes);
                     }});
  tensors.push_back(
      {{name("wkv.scale"), "F8_E8M0", {CeilDiv(out, kBlock), in / kBlock}},
       CeilDiv(out, kBlock) * (in / kBlock),
       [=, s = stream(Part::kWkvScales)](uint64_t offset, Bytes bytes) {
         FillRandom(seed, s, offset, bytes);
         SpreadOver(first_wkv_scale, 4, bytes);
       }});
  for (const auto& [what, part] :
       {std::pair{"q_weight", Part::kQ}, std::pair{"k_weight", Part::kK}}) {
    tensors.push_back({{name(what), "BF16", {hc, dim}},
                       hc * dim * sizeof(uint16_t),
                       [=, s = stream(part)](uint64_t offset, Bytes bytes) {
                         FillNormWeights(seed, s, offset, bytes);
                       }});
  }
  return tensors;
}

}  // namespace engram::ctl
