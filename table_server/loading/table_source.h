#ifndef ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"
#include "core/model/manifest.h"

namespace engram {

// Where a server's rows come from: a checkpoint, a function of their ids
// (synthetic), or, with neither, the other servers.
struct TableSource {
  Manifest manifest;
  std::optional<Checkpoint> checkpoint;
  std::optional<uint64_t> synthetic_seed;
};

struct TableSourceOptions {
  std::string source = "checkpoint";  // or "synthetic:SEED", or "peers"
  std::string checkpoint_dir;
  // Shapes of a synthetic table: one of these, or checkpoint_dir's config.json.
  std::string config_path;
  std::string preset;
  std::string manifest_path;  // of "peers"
};

// INVALID_ARGUMENT: another source, or an option that it needs is missing.
// Otherwise as the functions below.
absl::StatusOr<TableSource> OpenTableSource(const TableSourceOptions& options);

// A checkpoint with its engram_manifest.json. NOT_FOUND names the command that
// writes one; FAILED_PRECONDITION: it was made for another checkpoint.
absl::StatusOr<TableSource> OpenCheckpointSource(const std::string& dir);

// Rows that are a function of their id, for any configuration.
absl::StatusOr<TableSource> MakeSyntheticSource(const EngramConfig& config,
                                                uint64_t seed);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
