#ifndef ENGRAM_CORE_BASE_READ_FILE_H_
#define ENGRAM_CORE_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace engram {

// Whole content of a regular file of at most `max_bytes`. INVALID_ARGUMENT: it
// is larger. Else the errors of MappedFile::Open; messages name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_READ_FILE_H_
