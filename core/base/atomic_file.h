#ifndef ENGRAM_CORE_BASE_ATOMIC_FILE_H_
#define ENGRAM_CORE_BASE_ATOMIC_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// A file that appears under its name whole or not at all: written beside it
// under a temporary name, synced, renamed over it. Without a Commit that
// succeeded the temporary file is removed on destruction.
//
// Not thread safe.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Errors of the file system; the file can then only be dropped.
  absl::Status Append(absl::Span<const std::byte> bytes);
  // REQUIRES: called once, last.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temp_path, int fd);
  absl::Status Flush();
  absl::Status WriteAll(absl::Span<const std::byte> bytes);

  const std::string path_;
  const std::string temp_path_;
  int fd_;
  bool committed_ = false;
  std::vector<std::byte> pending_;  // small appends, gathered
};

// `content` under `path`, whole or not at all.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_ATOMIC_FILE_H_
