#include "table_server/store/file_cache.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "table_server/store/aligned_buffer.h"
#include "table_server/store/faulty_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

class FileCacheTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, char content) {
    return dir_.Write(name, std::string(4096, content));
  }
  // The first byte of what Get gives.
  char FirstByte(FileCache& cache, uint64_t key, const std::string& path) {
    const auto file = cache.Get(key, [&] { return path; });
    ENGRAM_CHECK(file.ok());
    AlignedBuffer page(4096);
    ENGRAM_CHECK(ReadFully(**file, path, 0, page.bytes()).ok());
    return static_cast<char>(page.bytes()[0]);
  }

  const test::TempDir dir_;
  FaultyFiles files_{dir_.path()};
};

TEST_F(FileCacheTest, OpensAFileOnce) {
  FileCache cache(files_, 64);
  const std::string path = Write("a", 'a');
  for (int i = 0; i < 5; ++i) EXPECT_EQ(FirstByte(cache, 1, path), 'a');
  EXPECT_EQ(files_.opens(), 1);
  EXPECT_EQ(cache.open(), 1u);
}

TEST_F(FileCacheTest, KeepsAtMostSoManyOpen) {
  FileCache cache(files_, 16);
  EXPECT_EQ(cache.max_open(), 16u);
  const std::string path = Write("a", 'a');
  for (uint64_t key = 0; key < 500; ++key) FirstByte(cache, key, path);
  EXPECT_LE(cache.open(), 16u);
  EXPECT_GT(cache.open(), 8u);
  // The last one is among them.
  FirstByte(cache, 499, path);
  EXPECT_EQ(files_.opens(), 500);
}

TEST_F(FileCacheTest, TellsWhatIsNotThere) {
  FileCache cache(files_, 16);
  EXPECT_THAT(cache.Get(1, [&] { return dir_.File("none"); }),
              test::IsError(absl::StatusCode::kNotFound,
                            ::testing::HasSubstr("/none: No such file")));
  EXPECT_EQ(cache.open(), 0u);
}

TEST_F(FileCacheTest, GivesTheNewFileAfterADrop) {
  FileCache cache(files_, 16);
  const std::string path = Write("a", 'a');
  EXPECT_EQ(FirstByte(cache, 1, path), 'a');
  ENGRAM_CHECK(std::rename(Write("b", 'b').c_str(), path.c_str()) == 0);
  EXPECT_EQ(FirstByte(cache, 1, path), 'a');
  cache.Drop(1);
  EXPECT_EQ(FirstByte(cache, 1, path), 'b');
}

// What was being opened when the drop came may be the old file.
TEST_F(FileCacheTest, DoesNotKeepWhatWasOpenedBeforeADrop) {
  FileCache cache(files_, 16);
  const std::string path = Write("a", 'a');
  const auto old = cache.Get(1, [&] {
    cache.Drop(1);
    return path;
  });
  EXPECT_THAT(old, test::IsOk());
  EXPECT_EQ(cache.open(), 0u);
}

}  // namespace
}  // namespace engram
