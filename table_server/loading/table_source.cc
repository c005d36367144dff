#include "table_server/loading/table_source.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/row_format.h"

namespace engram {
namespace {

absl::StatusOr<EngramConfig> SyntheticConfig(
    const TableSourceOptions& options) {
  if (!options.preset.empty()) return PresetConfig(options.preset);
  if (!options.config_path.empty()) return LoadConfig(options.config_path);
  if (!options.checkpoint_dir.empty()) {
    return LoadConfig(options.checkpoint_dir + "/config.json");
  }
  return absl::InvalidArgumentError(
      "a synthetic table needs a preset, a config file or a checkpoint "
      "directory with one");
}

absl::Status CheckHttpAccess(const TableSourceOptions& options) {
  const bool given =
      !options.http.token_file.empty() || !options.http.ca_file.empty();
  if (!given ||
      (options.source == "checkpoint" && IsHttpUrl(options.checkpoint_dir))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a token file and a CA file are for a checkpoint given by its URL");
}

absl::StatusOr<TableSource> OpenPeersSource(const std::string& manifest_path) {
  if (manifest_path.empty()) {
    return absl::InvalidArgumentError(
        "source peers needs the path of the table's manifest");
  }
  ENGRAM_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Load(manifest_path));
  ENGRAM_RETURN_IF_ERROR(CheckIsOfCheckpoint(manifest, manifest_path));
  return TableSource{std::move(manifest), std::nullopt, std::nullopt};
}

absl::StatusOr<TableSource> OpenHttpSource(const TableSourceOptions& options) {
  const absl::StatusOr<HttpFolder> folder =
      ParseHttpFolder(options.checkpoint_dir);
  if (!folder.ok()) return Annotate(folder.status(), "the checkpoint");
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<HttpReader> reader,
                          OpenHttpReader(*folder, options.http));
  ENGRAM_ASSIGN_OR_RETURN(
      Manifest manifest,
      options.manifest_path.empty()
          ? FetchManifest(*reader, *folder, options.while_opening)
          : Manifest::Load(options.manifest_path));
  ENGRAM_ASSIGN_OR_RETURN(
      std::vector<HttpLayer> layers,
      FindHttpLayers(*reader, *folder, manifest, options.while_opening));
  auto table = std::make_shared<HttpTable>();
  *table = {folder->url, std::move(reader), std::move(layers)};
  return TableSource{std::move(manifest), std::nullopt, std::nullopt,
                     std::move(table)};
}

}  // namespace

absl::Status CheckIsOfCheckpoint(const Manifest& manifest,
                                 const std::string& path) {
  if (manifest.source() == "checkpoint") return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is of a table with source ", manifest.source(),
                   ", not of a checkpoint"));
}

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
  ENGRAM_RETURN_IF_ERROR(CheckIsOfCheckpoint(*manifest, path));
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckManifestMatches(*manifest, checkpoint), path));
  return TableSource{*std::move(manifest), std::move(checkpoint), std::nullopt};
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

absl::StatusOr<TableSource> OpenTableSource(const TableSourceOptions& options) {
  ENGRAM_RETURN_IF_ERROR(CheckHttpAccess(options));
  if (options.source == "checkpoint") {
    if (options.checkpoint_dir.empty()) {
      return absl::InvalidArgumentError("no checkpoint directory is given");
    }
    if (IsHttpUrl(options.checkpoint_dir)) {
      return OpenHttpSource(options);
    }
    return OpenCheckpointSource(options.checkpoint_dir);
  }
  if (options.source == "peers") return OpenPeersSource(options.manifest_path);
  absl::string_view seed_text = options.source;
  uint64_t seed = 0;
  if (!absl::ConsumePrefix(&seed_text, "synthetic:") ||
      !absl::SimpleAtoi(seed_text, &seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("source \"", options.source,
                     "\" is neither checkpoint, synthetic:SEED nor peers"));
  }
  ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config, SyntheticConfig(options));
  return MakeSyntheticSource(config, seed);
}

}  // namespace engram
