#include "tests/testing/temp_dir.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace engram::test {

TempDir::TempDir() {
  char pattern[] = "/tmp/engram-test-XXXXXX";
  ENGRAM_CHECK(mkdtemp(pattern) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a test may have removed it
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string TempDir::Write(absl::string_view name,
                           absl::string_view content) const {
  const std::string path = File(name);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  ENGRAM_CHECK(file.good());
  return path;
}

std::vector<std::string> TempDir::List() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  ENGRAM_CHECK(file.good());
  return std::move(content).str();
}

void CopyFiles(const std::string& from, const std::string& to) {
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    std::filesystem::copy_file(
        entry.path(), std::filesystem::path(to) / entry.path().filename());
  }
}

}  // namespace engram::test
