#include "table_server/store/store_files.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cerrno>
#include <thread>
#include <vector>

#include "table_server/store/aligned_buffer.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::test {
namespace {

// As on a file system that takes O_DIRECT and refuses what is direct then:
// memory that is not aligned.
TEST(StoreFilesTest, ManyMayFindAtOnceThatAFileIsNotDirect) {
  const TempDir dir;
  const std::string path = dir.Write("file", std::string(4096, 'a'));
  constexpr int kThreads = 4;
  AlignedBuffer buffers((kThreads + 1) * 4096);
  for (int round = 0; round < 300; ++round) {
    const auto file = StoreFiles::Disk().Open(path);
    ASSERT_THAT(file, IsOk());
    std::barrier all(kThreads);
    std::vector<absl::StatusOr<size_t>> got(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto out = buffers.bytes().subspan(t * 4096 + 1, 4096);
        all.arrive_and_wait();
        got[t] = (*file)->ReadSome(0, out.subspan(0, 512));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& bytes : got) ASSERT_THAT(bytes, IsOk()) << round;
  }
}

// The kernel fails reads of memory that is not there as disks fail bad sectors.
TEST(StoreFilesTest, TellsErrorsOfTheMediumFromOthers) {
  const auto file = StoreFiles::Disk().Open("/proc/self/mem");
  ASSERT_THAT(file, IsOk());
  AlignedBuffer page(4096);
  const auto bad = (*file)->ReadSome(0, page.bytes());
  EXPECT_THAT(bad, IsError(absl::StatusCode::kUnavailable,
                           ::testing::HasSubstr("Input/output error")));
  EXPECT_TRUE(IsMediaError(bad.status()));
  for (const int error : {EMFILE, ENFILE, ENOMEM, EINVAL, ENOSPC, ENOENT}) {
    EXPECT_FALSE(IsMediaError(StoreFileError(error, "read", "/file"))) << error;
  }
}

TEST(StoreFilesTest, TriesDirectIoAndLeavesNothing) {
  const TempDir dir;
  TakesDirectIo(dir.path());
  EXPECT_THAT(*StoreFiles::Disk().List(dir.path()), ::testing::IsEmpty());
  EXPECT_FALSE(TakesDirectIo(dir.File("none")));
}

}  // namespace
}  // namespace engram::test
