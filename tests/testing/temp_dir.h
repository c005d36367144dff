#ifndef ENGRAM_TESTS_TESTING_TEMP_DIR_H_
#define ENGRAM_TESTS_TESTING_TEMP_DIR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace engram::test {

// A new directory, removed with everything in it on destruction. Short enough
// (under /tmp) for the path of a unix socket inside it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Path of an entry; nothing is created.
  std::string File(absl::string_view name) const;
  // Writes a file and returns its path.
  std::string Write(absl::string_view name, absl::string_view content) const;
  // Names of the entries, sorted.
  std::vector<std::string> List() const;

 private:
  std::string path_;
};

// Whole content of a file; the test aborts if it cannot be read.
std::string ReadAll(const std::string& path);

// Copies the files of `from` (no subdirectories) into `to`.
void CopyFiles(const std::string& from, const std::string& to);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_TEMP_DIR_H_
