#ifndef ENGRAM_CORE_MODEL_MANIFEST_JSON_H_
#define ENGRAM_CORE_MODEL_MANIFEST_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/config.h"
#include "core/model/manifest.h"
#include "core/model/row_format.h"

namespace engram {

inline constexpr char kManifestFormat[] = "engram-manifest/1";

// V4.1 has 11,720 partitions and half a megabyte of manifest.
inline constexpr size_t kMaxManifestBytes = size_t{64} << 20;

// What the text of a manifest says, checked as Manifest::Parse promises.
struct ManifestValues {
  std::string table;
  std::string source;
  EngramConfig config;
  RowFormat row_format;
  uint64_t partition_rows = 0;
  std::vector<ManifestLayer> layers;
};

absl::StatusOr<ManifestValues> ParseManifestJson(absl::string_view json);

// INVALID_ARGUMENT: neither "checkpoint" nor "synthetic:SEED".
absl::Status CheckManifestSource(absl::string_view source);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_MANIFEST_JSON_H_
