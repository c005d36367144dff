#ifndef ENGRAM_TABLE_SERVER_GATHER_REQUEST_ERRORS_H_
#define ENGRAM_TABLE_SERVER_GATHER_REQUEST_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"

namespace engram {

// WRONG_TABLE unless `version` is the manifest's, or empty.
absl::Status CheckVersion(absl::string_view version, const Manifest& manifest);

// UNKNOWN_LAYER.
absl::Status UnknownLayer(LayerId layer);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_REQUEST_ERRORS_H_
