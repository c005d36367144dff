#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_FILES_OF_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_FILES_OF_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tests/testing/temp_dir.h"

namespace engram::test {

// The files with rows of a store of any kind.
inline std::vector<std::string> RowFiles(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir)) {
    const std::string extension = file.path().extension();
    if (extension == ".rows" || extension == ".sst") {
      paths.push_back(file.path());
    }
  }
  return paths;
}

inline uint64_t RowFileBytes(const std::string& dir) {
  uint64_t bytes = 0;
  for (const std::string& path : RowFiles(dir)) {
    bytes += std::filesystem::file_size(path);
  }
  return bytes;
}

// The one of `dir` with `row` in it; empty: there is none.
inline std::string FileWith(const std::string& dir, const std::string& row) {
  for (const std::string& path : RowFiles(dir)) {
    if (ReadAll(path).find(row) != std::string::npos) return path;
  }
  return "";
}

// Flips a bit of it where it stands on the disk. False: nowhere.
inline bool DamageRow(const std::string& dir, const std::string& row) {
  const std::string path = FileWith(dir, row);
  if (path.empty()) return false;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(ReadAll(path).find(row)));
  file.put(static_cast<char>(row[0] ^ 1));
  file.close();
  ENGRAM_CHECK(file.good());
  return true;
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_FILES_OF_H_
