#ifndef ENGRAM_ENGRAM_CLIENT_CTL_FREE_BYTES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_FREE_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace engram::ctl {

// That this user may still write into a directory.
absl::StatusOr<uint64_t> FreeBytesIn(const std::string& dir);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_FREE_BYTES_H_
