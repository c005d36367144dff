#include "core/model/presets.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"

namespace engram {
namespace {

using NamedConfig = std::pair<absl::string_view, EngramConfig>;

EngramConfig V41WithVocabSize(uint32_t engram_vocab_size) {
  return {.vocab_size = 129280,
          .dim = 5120,
          .hc_mult = 4,
          .norm_eps = 1e-20,
          .layer_ids = {1, 14},
          .engram_vocab_size = engram_vocab_size,
          .max_ngram_size = 4,
          .pad_id = 2,
          .compressed_vocab_size = 99092,
          .n_heads = 8,
          .head_dim = 256};
}

std::vector<NamedConfig> Presets() {
  const EngramConfig tiny = {.vocab_size = 512,
                             .dim = 128,
                             .hc_mult = 4,
                             .norm_eps = 1e-20,
                             .layer_ids = {1, 14},
                             .engram_vocab_size = 1000,
                             .max_ngram_size = 4,
                             .pad_id = 2,
                             .compressed_vocab_size = 400,
                             .n_heads = 8,
                             .head_dim = 32};
  const EngramConfig odd = {.vocab_size = 300,
                            .dim = 96,
                            .hc_mult = 2,
                            .norm_eps = 1e-6,
                            .layer_ids = {0, 3, 7},
                            .engram_vocab_size = 257,
                            .max_ngram_size = 3,
                            .pad_id = 5,
                            .compressed_vocab_size = 123,
                            .n_heads = 4,
                            .head_dim = 64};
  const EngramConfig tiny_scale = {.vocab_size = 200,
                                   .dim = 64,
                                   .hc_mult = 4,
                                   .norm_eps = 1e-20,
                                   .layer_ids = {2},
                                   .engram_vocab_size = 331,
                                   .max_ngram_size = 4,
                                   .pad_id = 0,
                                   .compressed_vocab_size = 150,
                                   .n_heads = 2,
                                   .head_dim = 64};
  return {{"tiny", tiny},
          {"odd", odd},
          {"tiny-scale", tiny_scale},
          {"v41-mini", V41WithVocabSize(2000)},
          {"v41", V41WithVocabSize(16000000)}};
}

}  // namespace

absl::StatusOr<EngramConfig> PresetConfig(absl::string_view name) {
  for (auto& [preset_name, config] : Presets()) {
    if (preset_name != name) continue;
    EngramConfig filled = config;
    ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                            EngramLayout::Create(config));
    for (const LayerLayout& layer : layout.layers()) {
      filled.num_embeddings.push_back(layer.row_count);
    }
    return filled;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no preset is named \"", name, "\"; there are ",
                   absl::StrJoin(PresetNames(), ", ")));
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const NamedConfig& preset : Presets()) names.emplace_back(preset.first);
  return names;
}

std::vector<int32_t> MadeUpTokenMap(const EngramConfig& config) {
  std::vector<int32_t> map(config.vocab_size);
  for (size_t token = 0; token < map.size(); ++token) {
    map[token] = static_cast<int32_t>((uint64_t{token} * 7919 + 13) %
                                      config.compressed_vocab_size);
  }
  return map;
}

}  // namespace engram
