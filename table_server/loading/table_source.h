#ifndef ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/http/open_http_reader.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"
#include "core/model/manifest.h"
#include "table_server/loading/http_table.h"

namespace engram {

// Where a server's rows come from: a checkpoint on a disk or on a server, a
// function of their ids (synthetic), or, with none, the other servers.
struct TableSource {
  Manifest manifest;
  std::optional<Checkpoint> checkpoint;
  std::optional<uint64_t> synthetic_seed;
  std::shared_ptr<const HttpTable> http;
};

struct TableSourceOptions {
  std::string source = "checkpoint";  // or "synthetic:SEED", or "peers"
  std::string checkpoint_dir;         // or its URL, https:// or http://
  // Shapes of a synthetic table: one of these, or checkpoint_dir's config.json.
  std::string config_path;
  std::string preset;
  // Of "peers"; of a checkpoint by URL instead of the one that lies there.
  std::string manifest_path;
  HttpAccess http;  // of a checkpoint by URL
  // Asked some ten times a second while a checkpoint by URL is opened; its
  // error ends that.
  std::function<absl::Status()> while_opening = [] { return absl::OkStatus(); };
};

// INVALID_ARGUMENT: another source, or an option that it needs is missing.
// Otherwise as the functions below. A checkpoint by URL: blocks for as long as
// HttpReader tries and `while_opening` is OK; its errors, and those of
// ParseHttpFolder, OpenHttpReader, FetchManifest and FindHttpLayers.
absl::StatusOr<TableSource> OpenTableSource(const TableSourceOptions& options);

// A checkpoint with its engram_manifest.json. NOT_FOUND names the command that
// writes one; FAILED_PRECONDITION: it was made for another checkpoint.
absl::StatusOr<TableSource> OpenCheckpointSource(const std::string& dir);

// FAILED_PRECONDITION, naming `path`: its rows have no digests, as it is of a
// table that was never a checkpoint.
absl::Status CheckIsOfCheckpoint(const Manifest& manifest,
                                 const std::string& path);

// Rows that are a function of their id, for any configuration.
absl::StatusOr<TableSource> MakeSyntheticSource(const EngramConfig& config,
                                                uint64_t seed);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
