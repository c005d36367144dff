#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr size_t kPendingBytes = size_t{1} << 20;

absl::Status ErrnoError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

// A rename is durable once its directory is.
absl::Status SyncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string dir = slash == std::string::npos ? "."
                          : slash == 0               ? "/"
                                                     : path.substr(0, slash);
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", dir);
  // EINVAL: a file system that cannot sync directories.
  const bool synced = fsync(fd) == 0 || errno == EINVAL;
  const absl::Status status =
      synced ? absl::OkStatus() : ErrnoError("sync", dir);
  close(fd);
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path) {
  static std::atomic<uint64_t> next_number{0};
  std::string temp_path =
      absl::StrCat(path, ".tmp.", getpid(), ".", next_number.fetch_add(1));
  const int fd =
      open(temp_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoError("create", temp_path);
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(path, std::move(temp_path), fd));
}

AtomicFile::AtomicFile(std::string path, std::string temp_path, int fd)
    : path_(std::move(path)), temp_path_(std::move(temp_path)), fd_(fd) {
  pending_.reserve(kPendingBytes);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_) unlink(temp_path_.c_str());
}

absl::Status AtomicFile::Append(absl::Span<const std::byte> bytes) {
  if (bytes.size() > kPendingBytes - pending_.size()) {
    ENGRAM_RETURN_IF_ERROR(Flush());
  }
  if (bytes.size() >= kPendingBytes) return WriteAll(bytes);
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status AtomicFile::Flush() {
  ENGRAM_RETURN_IF_ERROR(WriteAll(pending_));
  pending_.clear();
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteAll(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError("write", temp_path_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  ENGRAM_RETURN_IF_ERROR(Flush());
  if (fsync(fd_) != 0) return ErrnoError("sync", temp_path_);
  if (close(std::exchange(fd_, -1)) != 0) {
    return ErrnoError("close", temp_path_);
  }
  if (rename(temp_path_.c_str(), path_.c_str()) != 0) {
    return ErrnoError("rename to", path_);
  }
  committed_ = true;
  return SyncDirectoryOf(path_);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::Create(path));
  ENGRAM_RETURN_IF_ERROR(file->Append(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()}));
  return file->Commit();
}

}  // namespace engram
