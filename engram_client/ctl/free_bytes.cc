#include "engram_client/ctl/free_bytes.h"

#include <sys/statvfs.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace engram::ctl {

absl::StatusOr<uint64_t> FreeBytesIn(const std::string& dir) {
  struct statvfs info = {};
  if (statvfs(dir.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", dir));
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

}  // namespace engram::ctl
