#ifndef ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"
#include "core/model/manifest.h"

namespace engram {

// Where a server's rows come from: a checkpoint, or nowhere at all.
struct TableSource {
  Manifest manifest;
  std::optional<Checkpoint> checkpoint;  // none: rows are synthetic
  uint64_t synthetic_seed = 0;
};

// A checkpoint with its engram_manifest.json. NOT_FOUND names the command that
// writes one; FAILED_PRECONDITION: it was made for another checkpoint.
absl::StatusOr<TableSource> OpenCheckpointSource(const std::string& dir);

// Rows that are a function of their id, for any configuration.
absl::StatusOr<TableSource> MakeSyntheticSource(const EngramConfig& config,
                                                uint64_t seed);

// The seed of "synthetic:SEED"; nothing for "checkpoint". INVALID_ARGUMENT:
// anything else.
absl::StatusOr<std::optional<uint64_t>> ParseSource(absl::string_view source);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_TABLE_SOURCE_H_
