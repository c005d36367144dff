#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_MANIFEST_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_MANIFEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/manifest.h"

namespace engram {

// Manifests that stores keep of their table versions, so that what is there can
// be verified without the checkpoint it came from.
//
//   FOLDER/<16 digits of the version>/engram_manifest.json
//
// FOLDER is the directory of flat stores itself, of RocksDB stores one in it.
std::string ManifestsOfFlatStores(const std::string& dir);
std::string ManifestsOfRocksStores(const std::string& dir);

// Whole or not at all, and there to stay. OK at once: it is there already.
// Errors of the file system. REQUIRES: the store of this version is locked, or
// nobody else keeps one.
absl::Status KeepManifest(const std::string& folder, const Manifest& manifest);

// Names of the directories with a manifest, ascending. None: no FOLDER either.
absl::StatusOr<std::vector<std::string>> KeptVersions(
    const std::string& folder);

// The one of the version that begins with `version`; empty: the only one there
// is. NOT_FOUND: none; INVALID_ARGUMENT: several; both name those that are
// there. DATA_LOSS: it is not what was kept.
absl::StatusOr<Manifest> LoadKeptManifest(const std::string& folder,
                                          absl::string_view version);

// A server serves this version of a store in FOLDER from now on. Errors of the
// file system.
absl::Status NoteServedVersion(const std::string& folder,
                               const std::string& version);
// The manifest of the version that was noted last; if none was, of the only one
// there is. Errors as LoadKeptManifest.
absl::StatusOr<Manifest> LoadServedManifest(const std::string& folder);

// But that of `version`. Errors of the file system.
absl::Status RemoveOtherManifests(const std::string& folder,
                                  absl::string_view version);

// Whether a file of a version's directory is its manifest, or one that was
// written in part.
bool IsManifestFileName(absl::string_view name);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_MANIFEST_H_
