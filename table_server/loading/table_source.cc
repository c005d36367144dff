#include "table_server/loading/table_source.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"
#include "core/model/row_format.h"

namespace engram {

absl::StatusOr<TableSource> OpenCheckpointSource(const std::string& dir) {
  ENGRAM_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(dir));
  const std::string path = absl::StrCat(dir, "/", kManifestFileName);
  absl::StatusOr<Manifest> manifest = Manifest::Load(path);
  if (absl::IsNotFound(manifest.status())) {
    return absl::NotFoundError(
        absl::StrCat(dir, " has no ", kManifestFileName,
                     ": make it with `engramctl manifest ", dir,
                     "`, once for a checkpoint"));
  }
  if (!manifest.ok()) return manifest.status();
  if (manifest->source() != "checkpoint") {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is of a table with source ", manifest->source(),
                     ", not of a checkpoint"));
  }
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckManifestMatches(*manifest, checkpoint), path));
  return TableSource{*std::move(manifest), std::move(checkpoint), 0};
}

absl::StatusOr<TableSource> MakeSyntheticSource(const EngramConfig& config,
                                                uint64_t seed) {
  const RowFormat defaults;
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(config));
  ENGRAM_ASSIGN_OR_RETURN(
      const RowFormat format,
      RowFormat::Create(defaults.code_dtype, defaults.scale_dtype,
                        config.head_dim, defaults.block_size));
  std::vector<ManifestLayer> layers;
  std::vector<uint64_t> row_counts;
  for (const LayerLayout& layer : layout.layers()) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
    row_counts.push_back(layer.row_count);
  }
  ENGRAM_ASSIGN_OR_RETURN(
      Manifest manifest,
      Manifest::Create(config, format, DefaultPartitionRows(row_counts),
                       std::move(layers), absl::StrCat("synthetic:", seed)));
  return TableSource{std::move(manifest), std::nullopt, seed};
}

absl::StatusOr<std::optional<uint64_t>> ParseSource(absl::string_view source) {
  if (source == "checkpoint") return std::nullopt;
  absl::string_view seed_text = source;
  uint64_t seed = 0;
  if (absl::ConsumePrefix(&seed_text, "synthetic:") &&
      absl::SimpleAtoi(seed_text, &seed)) {
    return seed;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "source \"", source, "\" is neither checkpoint nor synthetic:SEED"));
}

}  // namespace engram
