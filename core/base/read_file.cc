#include "core/base/read_file.h"

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mapped_file.h"
#include "core/base/status_macros.h"

namespace engram {

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                          MappedFile::Open(path));
  const absl::Span<const std::byte> bytes = file->bytes();
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", bytes.size(), " bytes, the limit is ", max_bytes));
  }
  std::string content(bytes.size(), '\0');
  if (bytes.empty()) return content;
  ENGRAM_RETURN_IF_ERROR(file->Guarded(
      [&] { std::memcpy(content.data(), bytes.data(), bytes.size()); }));
  return content;
}

}  // namespace engram
