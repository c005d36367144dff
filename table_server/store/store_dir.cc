#include "table_server/store/store_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "table_server/store/store_manifest.h"

namespace engram {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameDigits = 16;
// Behind the name of what is being removed.
constexpr char kRemoved[] = ".removed";

absl::Status Error(absl::string_view what, const std::string& path,
                   const std::error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", error.message()));
}

bool IsNumber(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Of what cannot be looked at: none.
fs::file_type TypeOf(const fs::directory_entry& entry) {
  std::error_code unknown;
  return entry.symlink_status(unknown).type();
}

bool IsRowsFile(const fs::directory_entry& file) {
  const std::string name = file.path().filename().string();
  absl::string_view number = name;
  absl::ConsumeSuffix(&number, ".tmp");
  return absl::ConsumeSuffix(&number, ".rows") && IsNumber(number) &&
         TypeOf(file) == fs::file_type::regular;
}

// Or one that was written in part.
bool IsKeptManifest(const fs::directory_entry& file) {
  return IsManifestFileName(file.path().filename().string()) &&
         TypeOf(file) == fs::file_type::regular;
}

bool IsLayerDir(const fs::directory_entry& dir) {
  const std::string name = dir.path().filename().string();
  absl::string_view number = name;
  return absl::ConsumePrefix(&number, "layer-") && IsNumber(number) &&
         TypeOf(dir) == fs::file_type::directory;
}

// In a version's directory; empty: there is nothing that no store puts there,
// or an error.
std::string FirstStranger(const std::string& dir, std::error_code& error) {
  const fs::directory_iterator end;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename() == "LOCK" || IsKeptManifest(*entry)) continue;
    if (!IsLayerDir(*entry)) return entry->path();
    fs::directory_iterator file(entry->path(), error);
    for (; !error && file != end; file.increment(error)) {
      if (!IsRowsFile(*file)) return file->path();
    }
    if (error) break;  // which the next step would forget
  }
  return "";
}

// Files that go away meanwhile do not count.
uint64_t BytesIn(const fs::path& dir) {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(dir, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code not_a_file;
    const uint64_t size = entry->file_size(not_a_file);
    if (!not_a_file && !IsKeptManifest(*entry)) bytes += size;
  }
  return bytes;
}

}  // namespace

std::string VersionDirName(absl::string_view version) {
  return std::string(version.substr(0, kNameDigits));
}

bool IsVersionDirName(absl::string_view name) {
  return name.size() == kNameDigits &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) && !absl::ascii_isupper(c);
         });
}

absl::Status MakeStoreDir(StoreFiles& files, const std::string& dir) {
  ENGRAM_RETURN_IF_ERROR(files.MakeDir(dir));
  fs::path path = fs::path(dir).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // behind a last slash
  const fs::path parent = path.parent_path();
  const absl::Status synced =
      files.SyncDir(parent.empty() ? "." : parent.string());
  // Who may not read it has not made a directory in it.
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::Take(
    const std::string& version_dir) {
  return TakeFile(version_dir, O_RDWR | O_CREAT, LOCK_EX);
}

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::TakeUsed(
    const std::string& version_dir) {
  return TakeFile(version_dir, O_RDWR, LOCK_EX);
}

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::TakeShared(
    const std::string& version_dir) {
  return TakeFile(version_dir, O_RDONLY, LOCK_SH);
}

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::TakeFile(
    const std::string& version_dir, int flags, int operation) {
  const std::string path = absl::StrCat(version_dir, "/LOCK");
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT && (flags & O_CREAT) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not there: no store used the directory"));
  }
  if (fd < 0) {
    return Error("open", path, std::error_code(errno, std::system_category()));
  }
  auto lock = std::unique_ptr<StoreLock>(new StoreLock(fd));
  if (flock(fd, operation | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK) {
      return Error("lock", path,
                   std::error_code(error, std::system_category()));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        version_dir, " is in use by another server or command, which has ",
        path, " locked"));
  }
  // Of a directory that was removed between the two steps nobody has the use.
  struct stat locked;
  struct stat there;
  if (fstat(fd, &locked) != 0 || stat(path.c_str(), &there) != 0 ||
      locked.st_ino != there.st_ino || locked.st_dev != there.st_dev) {
    return absl::FailedPreconditionError(
        absl::StrCat(version_dir, " was removed while it was being opened"));
  }
  return lock;
}

StoreLock::~StoreLock() { close(fd_); }

absl::StatusOr<std::vector<StoredVersion>> OtherVersions(
    const std::string& dir, absl::string_view version) {
  std::vector<StoredVersion> others;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view digits = name;
    const bool half_removed = absl::ConsumeSuffix(&digits, kRemoved);
    if (!IsVersionDirName(digits) || name == VersionDirName(version)) continue;
    others.push_back({name, BytesIn(entry->path()), half_removed});
  }
  if (error) return Error("list", dir, error);
  std::sort(others.begin(), others.end(),
            [](const StoredVersion& a, const StoredVersion& b) {
              return a.name < b.name;
            });
  return others;
}

absl::Status RemoveVersion(const std::string& dir, const std::string& name) {
  const std::string path = absl::StrCat(dir, "/", name);
  const bool half_removed = absl::EndsWith(name, kRemoved);
  std::unique_ptr<StoreLock> lock;
  if (!half_removed) {
    ENGRAM_ASSIGN_OR_RETURN(lock, StoreLock::TakeUsed(path));
  }
  std::error_code error;
  const std::string stranger = FirstStranger(path, error);
  if (error) return Error("list", path, error);
  if (!stranger.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(stranger, " is no file of a store"));
  }
  if (half_removed) {
    fs::remove_all(path, error);
    return error ? Error("remove", path, error) : absl::OkStatus();
  }
  // Under another name, so that a server that opens the version meanwhile makes
  // a directory of its own, and what is left after an end in between is known.
  if (fs::exists(path + kRemoved, error)) {
    ENGRAM_RETURN_IF_ERROR(RemoveVersion(dir, name + kRemoved));
  }
  fs::rename(path, path + kRemoved, error);
  if (error) return Error("rename", path, error);
  return RemoveVersion(dir, name + kRemoved);
}

}  // namespace engram
