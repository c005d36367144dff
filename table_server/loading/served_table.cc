#include "table_server/loading/served_table.h"

#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/http/http_url.h"
#include "table_server/loading/open_local_store.h"
#include "table_server/store/store_manifest.h"

namespace engram {
namespace {

absl::StatusOr<TableSource> KeptTable(const TierOptions& tiers) {
  ENGRAM_ASSIGN_OR_RETURN(const LocalStorePlace place,
                          LocalStorePlace::Parse(tiers.store));
  ENGRAM_ASSIGN_OR_RETURN(Manifest manifest,
                          LoadServedManifest(place.manifests()));
  ENGRAM_RETURN_IF_ERROR(CheckIsOfCheckpoint(manifest, place.manifests()));
  return TableSource{std::move(manifest), std::nullopt, std::nullopt, nullptr};
}

absl::StatusOr<TableSource> WithoutCheckpoint(const TableSourceOptions& options,
                                              const TierOptions& tiers) {
  if (options.manifest_path.empty()) return KeptTable(tiers);
  return OpenTableSource(
      {.source = "peers", .manifest_path = options.manifest_path});
}

}  // namespace

absl::StatusOr<TableSource> OpenServedTable(const TableSourceOptions& options,
                                            const TierOptions& tiers) {
  if (tiers.store.empty()) return OpenTableSource(options);
  if (options.source == "peers" && options.manifest_path.empty()) {
    return KeptTable(tiers);
  }
  absl::StatusOr<TableSource> source = OpenTableSource(options);
  if (!absl::IsUnavailable(source.status()) ||
      !IsHttpUrl(options.checkpoint_dir)) {
    return source;
  }
  absl::StatusOr<TableSource> kept = WithoutCheckpoint(options, tiers);
  if (!kept.ok()) {
    spdlog::warn("{} cannot stand in for the checkpoint: {}", tiers.store,
                 std::string(kept.status().message()));
    return source;
  }
  spdlog::warn(
      "{}; until the next start rows of version {} come from {} and from peers",
      std::string(source.status().message()), kept->manifest.version(),
      tiers.store);
  return kept;
}

}  // namespace engram
