#include "engram_client/ctl/load_reference.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/synthetic_rows.h"

namespace engram::ctl {
namespace {

class CheckpointReference final : public RowReference {
 public:
  CheckpointReference(Checkpoint checkpoint, std::string version)
      : checkpoint_(std::move(checkpoint)), version_(std::move(version)) {}

  const std::string& version() const override { return version_; }
  absl::Status Read(LayerId layer, absl::Span<const RowId> row_ids,
                    absl::Span<std::byte> out) const override {
    ENGRAM_ASSIGN_OR_RETURN(const size_t index,
                            checkpoint_.layout().IndexOf(layer));
    return checkpoint_.GatherRows(index, row_ids, out);
  }

 private:
  const Checkpoint checkpoint_;
  const std::string version_;
};

class SyntheticReference final : public RowReference {
 public:
  SyntheticReference(uint64_t seed, RowFormat format, std::string version)
      : seed_(seed), format_(std::move(format)), version_(std::move(version)) {}

  const std::string& version() const override { return version_; }
  absl::Status Read(LayerId layer, absl::Span<const RowId> row_ids,
                    absl::Span<std::byte> out) const override {
    const size_t row_bytes = format_.row_bytes();
    for (size_t i = 0; i < row_ids.size(); ++i) {
      SyntheticRow(seed_, layer, row_ids[i], format_,
                   out.subspan(i * row_bytes, row_bytes));
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const RowFormat format_;
  const std::string version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReference>> OpenCheckpointReference(
    const std::string& dir) {
  ENGRAM_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(dir));
  const std::string path = absl::StrCat(dir, "/", kManifestFileName);
  ENGRAM_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Load(path));
  if (manifest.source() != "checkpoint") {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is of a table with source ", manifest.source(),
                     ", not of a checkpoint"));
  }
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckManifestMatches(manifest, checkpoint), path));
  return std::make_unique<CheckpointReference>(std::move(checkpoint),
                                               manifest.version());
}

absl::StatusOr<std::unique_ptr<RowReference>> MakeSyntheticReference(
    const TableInfo& table, uint64_t seed) {
  std::vector<ManifestLayer> layers;
  for (const TableInfo::Layer& layer : table.layers) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  const std::string source = absl::StrCat("synthetic:", seed);
  ENGRAM_ASSIGN_OR_RETURN(
      const Manifest manifest,
      Manifest::Create(table.config, table.row_format, table.partition_rows,
                       std::move(layers), source));
  if (manifest.version() != table.version) {
    return absl::FailedPreconditionError(
        absl::StrCat("the servers' table ", table.version, " is not ", source,
                     ", which would have the version ", manifest.version()));
  }
  return std::make_unique<SyntheticReference>(seed, table.row_format,
                                              manifest.version());
}

}  // namespace engram::ctl
