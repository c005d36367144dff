#include "engram_client/ctl/staging_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engram_client/ctl/free_bytes.h"

namespace engram::ctl {
namespace {

namespace fs = std::filesystem;

absl::Status ToStatus(const std::error_code& error, absl::string_view what) {
  return absl::ErrnoToStatus(error.value(), what);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagingDirectory>> StagingDirectory::Create(
    const std::string& directory, Existing existing) {
  std::error_code error;
  const bool created = fs::create_directories(directory, error);
  if (error) return ToStatus(error, absl::StrCat("cannot make ", directory));
  if (!created && existing == Existing::kRefuse) {
    const bool empty = fs::is_empty(directory, error);
    if (error) return ToStatus(error, absl::StrCat("cannot read ", directory));
    if (!empty) {
      return absl::AlreadyExistsError(
          absl::StrCat(directory,
                       " is not empty (--force replaces the files "
                       "of a checkpoint in it)"));
    }
  }
  std::string staging = absl::StrCat(directory, "/.partial.XXXXXX");
  if (mkdtemp(staging.data()) == nullptr) {
    const int mkdtemp_errno = errno;
    if (created) fs::remove(directory, error);
    return absl::ErrnoToStatus(mkdtemp_errno,
                               absl::StrCat("cannot write in ", directory));
  }
  return std::unique_ptr<StagingDirectory>(
      new StagingDirectory(directory, std::move(staging), created));
}

StagingDirectory::~StagingDirectory() { Remove(); }

void StagingDirectory::Remove() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (created_ && !published_) fs::remove(directory_, ignored);
}

std::string StagingDirectory::PathOf(absl::string_view name) const {
  return absl::StrCat(staging_, "/", name);
}

absl::StatusOr<uint64_t> StagingDirectory::FreeBytes() const {
  return FreeBytesIn(staging_);
}

absl::Status StagingDirectory::RemoveOld(absl::string_view name) const {
  const std::string path = absl::StrCat(directory_, "/", name);
  std::error_code error;
  fs::remove(path, error);
  if (error) return ToStatus(error, absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

absl::Status StagingDirectory::Publish() {
  std::error_code error;
  fs::directory_iterator files(staging_, error);
  if (error) return ToStatus(error, absl::StrCat("cannot read ", staging_));
  published_ = true;  // from here on the directory has something in it
  for (const fs::directory_entry& file : files) {
    const fs::path target = fs::path(directory_) / file.path().filename();
    fs::rename(file.path(), target, error);
    if (error) {
      return ToStatus(
          error, absl::StrCat("cannot rename ", file.path().string(), " to ",
                              target.string()));
    }
  }
  return absl::OkStatus();
}

}  // namespace engram::ctl
