#include "table_server/store/store_manifest.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/atomic_file.h"
#include "core/base/read_file.h"
#include "core/base/status_macros.h"
#include "table_server/store/store_dir.h"
#include "table_server/store/store_files.h"

namespace engram {
namespace {

namespace fs = std::filesystem;

// As AtomicFile names them.
constexpr char kInPart[] = ".tmp.";

std::string VersionDir(const std::string& folder, absl::string_view version) {
  return absl::StrCat(folder, "/", VersionDirName(version));
}

std::string PathIn(const std::string& version_dir) {
  return absl::StrCat(version_dir, "/", kManifestFileName);
}

std::string ServedVersionPath(const std::string& folder) {
  return absl::StrCat(folder, "/served-version");
}

// Of a process that was killed.
absl::Status RemoveHalfWritten(const std::string& version_dir) {
  StoreFiles& files = StoreFiles::Disk();
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(version_dir));
  for (const std::string& name : names) {
    if (!IsManifestFileName(name) || name == kManifestFileName) continue;
    ENGRAM_RETURN_IF_ERROR(files.Remove(absl::StrCat(version_dir, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ManifestsOfFlatStores(const std::string& dir) { return dir; }

std::string ManifestsOfRocksStores(const std::string& dir) {
  return absl::StrCat(dir, "/rocksdb-manifests");
}

bool IsManifestFileName(absl::string_view name) {
  return name == kManifestFileName ||
         absl::StartsWith(name, absl::StrCat(kManifestFileName, kInPart));
}

absl::Status KeepManifest(const std::string& folder, const Manifest& manifest) {
  const std::string version_dir = VersionDir(folder, manifest.version());
  StoreFiles& files = StoreFiles::Disk();
  ENGRAM_RETURN_IF_ERROR(MakeStoreDir(files, folder));
  ENGRAM_RETURN_IF_ERROR(MakeStoreDir(files, version_dir));
  ENGRAM_RETURN_IF_ERROR(RemoveHalfWritten(version_dir));
  const auto kept = Manifest::Load(PathIn(version_dir));
  if (kept.ok() && kept->version() == manifest.version()) {
    return absl::OkStatus();
  }
  return manifest.Save(PathIn(version_dir));
}

absl::StatusOr<std::vector<std::string>> KeptVersions(
    const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    if (IsVersionDirName(name) && fs::exists(PathIn(entry->path()), ignored)) {
      names.push_back(name);
    }
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot list ", folder, ": ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Manifest> LoadKeptManifest(const std::string& folder,
                                          absl::string_view version) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          KeptVersions(folder));
  std::vector<std::string> found = all;
  std::erase_if(found, [&](const std::string& name) {
    return !absl::StartsWith(name, VersionDirName(version));
  });
  if (all.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, " keeps no manifest of any table version"));
  }
  const std::string names =
      absl::StrCat(folder, " has table versions ", absl::StrJoin(all, ", "));
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(names, ", not ", version));
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(names, ": say which one is meant"));
  }
  const std::string path = PathIn(absl::StrCat(folder, "/", found[0]));
  absl::StatusOr<Manifest> manifest = Manifest::Load(path);
  if (manifest.ok() ? VersionDirName(manifest->version()) != found[0]
                    : absl::IsInvalidArgument(manifest.status())) {
    return absl::DataLossError(absl::StrCat(
        path, " is damaged: it is not the manifest of version ", found[0]));
  }
  if (manifest.ok() && !absl::StartsWith(manifest->version(), version)) {
    return absl::NotFoundError(absl::StrCat(
        path, " is of table version ", manifest->version(), ", not ", version));
  }
  return manifest;
}

absl::Status NoteServedVersion(const std::string& folder,
                               const std::string& version) {
  return WriteFileAtomically(ServedVersionPath(folder), version + "\n");
}

absl::StatusOr<Manifest> LoadServedManifest(const std::string& folder) {
  constexpr uint64_t kMaxBytes = 256;
  absl::StatusOr<std::string> version =
      ReadFile(ServedVersionPath(folder), kMaxBytes);
  if (absl::IsNotFound(version.status())) {
    return LoadKeptManifest(folder, /*version=*/"");
  }
  ENGRAM_RETURN_IF_ERROR(version.status());
  absl::StripAsciiWhitespace(&*version);
  return LoadKeptManifest(folder, *version);
}

absl::Status RemoveOtherManifests(const std::string& folder,
                                  absl::string_view version) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          KeptVersions(folder));
  for (const std::string& name : names) {
    if (name == VersionDirName(version)) continue;
    const std::string dir = absl::StrCat(folder, "/", name);
    ENGRAM_RETURN_IF_ERROR(RemoveHalfWritten(dir));
    ENGRAM_RETURN_IF_ERROR(StoreFiles::Disk().Remove(PathIn(dir)));
    std::error_code ignored;  // what else somebody put there stays
    fs::remove(dir, ignored);
  }
  return absl::OkStatus();
}

}  // namespace engram
