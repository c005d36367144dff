#ifndef ENGRAM_TESTS_FUZZ_FUZZ_INPUT_H_
#define ENGRAM_TESTS_FUZZ_FUZZ_INPUT_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"

namespace engram::test {

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file in memory, for parsers that open one by path.
class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view content)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    ENGRAM_CHECK(fd_ >= 0);
    ENGRAM_CHECK(write(fd_, content.data(), content.size()) ==
                 static_cast<ssize_t>(content.size()));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_FUZZ_FUZZ_INPUT_H_
