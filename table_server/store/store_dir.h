#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_DIR_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_DIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "table_server/store/store_files.h"

namespace engram {

// A directory of flat stores has a subdirectory for each table version: the
// first 16 hex digits of it.
std::string VersionDirName(absl::string_view version);
bool IsVersionDirName(absl::string_view name);

// With its parent synced: a directory that was just made is there to stay.
absl::Status MakeStoreDir(StoreFiles& files, const std::string& dir);

// The right to use a version's directory, until it is destroyed or the process
// ends.
class StoreLock {
 public:
  // FAILED_PRECONDITION: another process has it (or another store of this
  // one), or it was just removed. UNAVAILABLE: what the system says.
  static absl::StatusOr<std::unique_ptr<StoreLock>> Take(
      const std::string& version_dir);
  // FAILED_PRECONDITION also: it was never used.
  static absl::StatusOr<std::unique_ptr<StoreLock>> TakeUsed(
      const std::string& version_dir);
  // As TakeUsed, together with others that take it so: to read only.
  static absl::StatusOr<std::unique_ptr<StoreLock>> TakeShared(
      const std::string& version_dir);
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  static absl::StatusOr<std::unique_ptr<StoreLock>> TakeFile(
      const std::string& version_dir, int flags, int operation);
  explicit StoreLock(int fd) : fd_(fd) {}

  const int fd_;
};

struct StoredVersion {
  std::string name;  // of its directory
  uint64_t bytes = 0;
  bool half_removed = false;  // RemoveVersion came to no end
};

// Of the versions in `dir` but `version`, ascending by name. Manifests that are
// kept there do not count.
absl::StatusOr<std::vector<StoredVersion>> OtherVersions(
    const std::string& dir, absl::string_view version);

// With all that is in it. FAILED_PRECONDITION, and nothing is touched: it is in
// use, or has something that no store puts there.
absl::Status RemoveVersion(const std::string& dir, const std::string& name);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_DIR_H_
