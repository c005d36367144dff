#ifndef ENGRAM_CORE_MODEL_PRESETS_H_
#define ENGRAM_CORE_MODEL_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/config.h"

namespace engram {

// Configurations for made-up checkpoints and synthetic tables: "tiny" and
// "odd" (small, every dimension different), "tiny-scale" (for rows so small
// that the projection rounds them), "v41-mini" (the shapes of
// DeepSeek-V4.1-Flash with 48k rows a layer) and "v41" (its 384M rows).
// num_embeddings is filled in. INVALID_ARGUMENT lists the names.
absl::StatusOr<EngramConfig> PresetConfig(absl::string_view name);

std::vector<std::string> PresetNames();

// The made-up token map of such checkpoints: every compressed id used,
// neighbours mixed. Not the map of the real tokenizer.
std::vector<int32_t> MadeUpTokenMap(const EngramConfig& config);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_PRESETS_H_
