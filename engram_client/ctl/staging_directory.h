#ifndef ENGRAM_ENGRAM_CLIENT_CTL_STAGING_DIRECTORY_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_STAGING_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram::ctl {

// Files that appear in a directory together or not at all. They are written
// into a hidden folder inside it (the same file system, even where the
// directory is a mount point) and renamed by Publish. Without Publish the
// destructor removes them, and the directory too where Create made it.
//
// Thread safety: none.
class StagingDirectory {
 public:
  enum class Existing { kRefuse, kReplace };

  // Makes `directory` where it is missing. ALREADY_EXISTS: kRefuse, and it has
  // something in it. kReplace: files of the same name are replaced by Publish,
  // others are left alone.
  static absl::StatusOr<std::unique_ptr<StagingDirectory>> Create(
      const std::string& directory, Existing existing);
  ~StagingDirectory();
  StagingDirectory(const StagingDirectory&) = delete;
  StagingDirectory& operator=(const StagingDirectory&) = delete;

  // Where to write what becomes `directory`/`name`.
  std::string PathOf(absl::string_view name) const;
  const std::string& path() const { return staging_; }

  // Bytes that this user may still write there.
  absl::StatusOr<uint64_t> FreeBytes() const;

  // Removes `directory`/`name`, if it is there.
  absl::Status RemoveOld(absl::string_view name) const;

  absl::Status Publish();

  // What the destructor does. Nobody may be writing into path().
  void Remove();

 private:
  StagingDirectory(std::string directory, std::string staging, bool created)
      : directory_(std::move(directory)),
        staging_(std::move(staging)),
        created_(created) {}

  const std::string directory_;
  const std::string staging_;
  const bool created_;
  bool published_ = false;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_STAGING_DIRECTORY_H_
