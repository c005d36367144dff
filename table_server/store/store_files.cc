#include "table_server/store/store_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

constexpr absl::string_view kMediaError = "engram/media-error";

absl::Status FileError(absl::string_view what, absl::string_view path) {
  return StoreFileError(errno, what, path);
}

class DiskFile final : public StoreFile {
 public:
  DiskFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~DiskFile() override { close(fd_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  absl::StatusOr<size_t> ReadSome(uint64_t offset,
                                  absl::Span<std::byte> out) const override {
    bool was_refused = false;
    while (true) {
      const ssize_t got =
          pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got >= 0) return static_cast<size_t>(got);
      if (!MayTryAgain(was_refused)) {
        return FileError(absl::StrCat("read at ", offset, " of"), path_);
      }
    }
  }

  absl::StatusOr<size_t> WriteSome(uint64_t offset,
                                   absl::Span<const std::byte> bytes) override {
    bool was_refused = false;
    while (true) {
      const ssize_t done =
          pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done > 0) return static_cast<size_t>(done);
      if (done == 0) errno = ENOSPC;
      if (done == 0 || !MayTryAgain(was_refused)) {
        return FileError(absl::StrCat("write at ", offset, " of"), path_);
      }
    }
  }

  absl::Status Sync() override {
    return fdatasync(fd_) == 0 ? absl::OkStatus() : FileError("sync", path_);
  }

  absl::StatusOr<uint64_t> SizeBytes() const override {
    struct stat about;
    if (fstat(fd_, &about) != 0) return FileError("look at", path_);
    return static_cast<uint64_t>(about.st_size);
  }

 private:
  // Some file systems take O_DIRECT when a file is opened and refuse it when it
  // is used. What is aligned is right for both. Once a call: another thread may
  // have been the one that took O_DIRECT away.
  bool MayTryAgain(bool& was_refused) const {
    if (errno == EINTR) return true;
    if (errno != EINVAL || std::exchange(was_refused, true)) return false;
    const int flags = fcntl(fd_, F_GETFL);
    const bool changed =
        flags >= 0 && fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0;
    if (!changed) errno = EINVAL;
    return changed;
  }

  const int fd_;
  const std::string path_;
};

int OpenDirect(const std::string& path, int flags) {
  flags |= O_CLOEXEC;
  const int fd = open(path.c_str(), flags | O_DIRECT, 0666);
  return fd < 0 && errno == EINVAL ? open(path.c_str(), flags, 0666) : fd;
}

class DiskFiles final : public StoreFiles {
 public:
  absl::StatusOr<std::unique_ptr<StoreFile>> Create(
      const std::string& path, uint64_t size_bytes) override {
    const int fd = OpenDirect(path, O_RDWR | O_CREAT | O_TRUNC);
    if (fd < 0) return FileError("create", path);
    auto file = std::make_unique<DiskFile>(fd, path);
    // In few pieces, and no room is told before anything is written. Whoever
    // cannot do it says so and does without.
    if (fallocate(fd, 0, 0, static_cast<off_t>(size_bytes)) != 0 &&
        CodeOf(errno) == absl::StatusCode::kResourceExhausted) {
      return FileError(absl::StrCat("have ", size_bytes, " bytes for"), path);
    }
    return file;
  }

  absl::StatusOr<std::unique_ptr<StoreFile>> Open(
      const std::string& path) override {
    const int fd = OpenDirect(path, O_RDONLY);
    if (fd < 0) return FileError("open", path);
    // Where reads are not direct: what is beside a row is not wanted.
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return std::make_unique<DiskFile>(fd, path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return FileError("rename to", to);
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
    return FileError("remove", path);
  }

  absl::Status MakeDir(const std::string& path) override {
    if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) {
      return absl::OkStatus();
    }
    return FileError("make directory", path);
  }

  absl::Status SyncDir(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return FileError("open", path);
    // EINVAL: a file system that cannot sync directories.
    const bool synced = fsync(fd) == 0 || errno == EINVAL;
    const absl::Status status =
        synced ? absl::OkStatus() : FileError("sync", path);
    close(fd);
    return status;
  }

  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    DIR* const dir = opendir(path.c_str());
    if (dir == nullptr) return FileError("list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(dir)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const absl::Status status =
        errno == 0 ? absl::OkStatus() : FileError("list", path);
    closedir(dir);
    if (!status.ok()) return status;
    return names;
  }
};

}  // namespace

absl::Status StoreFileError(int error, absl::string_view what,
                            absl::string_view path) {
  absl::Status status(CodeOf(error), absl::StrCat("cannot ", what, " ", path,
                                                  ": ", strerror(error)));
  return error == EIO ? AsMediaError(std::move(status)) : status;
}

absl::Status AsMediaError(absl::Status status) {
  status.SetPayload(kMediaError, absl::Cord());
  return status;
}

bool IsMediaError(const absl::Status& status) {
  return status.GetPayload(kMediaError).has_value();
}

StoreFiles& StoreFiles::Disk() {
  static auto* const disk = new DiskFiles;
  return *disk;
}

bool TakesDirectIo(const std::string& dir) {
  std::string path = dir + "/direct-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC | O_DIRECT);
  if (fd < 0) return false;
  unlink(path.c_str());
  alignas(kDirectAlignment) char page[kDirectAlignment] = {};
  const bool takes = pwrite(fd, page, sizeof(page), 0) == sizeof(page) &&
                     pread(fd, page, sizeof(page), 0) == sizeof(page);
  close(fd);
  return takes;
}

bool ReadsDirectly(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (fd < 0) return false;
  alignas(kDirectAlignment) char page[kDirectAlignment];
  const bool reads = pread(fd, page, sizeof(page), 0) >= 0;
  close(fd);
  return reads;
}

absl::Status ReadFully(const StoreFile& file, absl::string_view path,
                       uint64_t offset, absl::Span<std::byte> out) {
  while (!out.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(const size_t got, file.ReadSome(offset, out));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path, " ends at ", offset, ", ",
                                              out.size(), " bytes too early"));
    }
    // What came in between two units of alignment is asked for again.
    const size_t taken =
        got == out.size() ? got : got / kDirectAlignment * kDirectAlignment;
    if (taken == 0) {
      return absl::DataLossError(absl::StrCat(path, " ends at ", offset + got,
                                              ", in the middle of a page"));
    }
    offset += taken;
    out.remove_prefix(taken);
  }
  return absl::OkStatus();
}

absl::Status WriteFully(StoreFile& file, absl::string_view path,
                        uint64_t offset, absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(const size_t done, file.WriteSome(offset, bytes));
    ENGRAM_CHECK(done > 0 && done <= bytes.size());
    // A write that broke off within a unit of alignment goes on before it.
    const size_t whole = done == bytes.size()
                             ? done
                             : done / kDirectAlignment * kDirectAlignment;
    if (whole == 0) {
      return absl::UnavailableError(absl::StrCat(
          "a write to ", path, " at ", offset, " took ", done, " of ",
          bytes.size(), " bytes, less than the unit of ", kDirectAlignment));
    }
    offset += whole;
    bytes.remove_prefix(whole);
  }
  return absl::OkStatus();
}

}  // namespace engram
