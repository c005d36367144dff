#include "core/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kPageBytes = 4096;
constexpr size_t kFileBytes = 64 * kPageBytes;

// Touches every page and returns the sum of their first bytes.
absl::Status SumPages(const MappedFile& file, unsigned* sum) {
  return file.Guarded([&] {
    unsigned total = 0;
    for (size_t at = 0; at < file.bytes().size(); at += kPageBytes) {
      total += static_cast<unsigned>(
          *const_cast<const volatile std::byte*>(&file.bytes()[at]));
    }
    *sum = total;
  });
}

class MappedFileTest : public ::testing::Test {
 protected:
  std::shared_ptr<const MappedFile> Map(const std::string& name) {
    const std::string path = dir_.Write(name, std::string(kFileBytes, '\1'));
    auto file = MappedFile::Open(path);
    EXPECT_THAT(file, IsOk());
    return *std::move(file);
  }

  TempDir dir_;
};

TEST_F(MappedFileTest, ShowsTheFile) {
  const std::string path = dir_.Write("a", "hello");
  const auto file = MappedFile::Open(path);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->path(), path);
  ASSERT_EQ((*file)->bytes().size(), 5U);
  char copy[5];
  ASSERT_THAT(
      (*file)->Guarded([&] { std::memcpy(copy, (*file)->bytes().data(), 5); }),
      IsOk());
  EXPECT_EQ(absl::string_view(copy, 5), "hello");
}

TEST_F(MappedFileTest, EmptyFile) {
  const auto file = MappedFile::Open(dir_.Write("empty", ""));
  ASSERT_THAT(file, IsOk());
  EXPECT_TRUE((*file)->bytes().empty());
  EXPECT_THAT((*file)->Guarded([] {}), IsOk());
}

TEST_F(MappedFileTest, ErrorsNameThePath) {
  EXPECT_THAT(MappedFile::Open(dir_.File("none")),
              IsError(absl::StatusCode::kNotFound, HasSubstr("/none")));
  EXPECT_THAT(
      MappedFile::Open(dir_.path()),
      IsError(absl::StatusCode::kInvalidArgument,
              AllOf(HasSubstr(dir_.path()), HasSubstr("not a regular"))));
  const std::string secret = dir_.Write("secret", "x");
  ASSERT_EQ(chmod(secret.c_str(), 0), 0);
  if (geteuid() != 0) {  // root reads everything
    EXPECT_THAT(
        MappedFile::Open(secret),
        IsError(absl::StatusCode::kPermissionDenied, HasSubstr("/secret")));
  }
}

TEST_F(MappedFileTest, TruncatedWhileMappedIsAnError) {
  const auto file = Map("a");
  unsigned sum = 0;
  ASSERT_THAT(SumPages(*file, &sum), IsOk());
  EXPECT_EQ(sum, 64U);
  ASSERT_EQ(truncate(file->path().c_str(), kPageBytes), 0);
  for (int i = 0; i < 3; ++i) {  // again and again, the process lives
    EXPECT_THAT(SumPages(*file, &sum),
                IsError(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr(file->path()), HasSubstr("truncated"),
                              HasSubstr("262144 bytes"))));
  }
  // What is still there can be read.
  std::byte first{};
  EXPECT_THAT(file->Guarded([&] { first = file->bytes()[0]; }), IsOk());
  EXPECT_EQ(first, std::byte{1});
}

TEST_F(MappedFileTest, GuardsNest) {
  const auto outer = Map("outer");
  const auto inner = Map("inner");
  ASSERT_EQ(truncate(inner->path().c_str(), 0), 0);
  unsigned sum = 0;
  bool inner_failed = false;
  ASSERT_EQ(truncate(outer->path().c_str(), 0), 0);
  EXPECT_THAT(outer->Guarded([&] {
    inner_failed = !SumPages(*inner, &sum).ok();
    // The outer guard is back after the inner one was left by the signal.
    sum += static_cast<unsigned>(
        *const_cast<const volatile std::byte*>(&outer->bytes()[0]));
  }),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("/outer")));
  EXPECT_TRUE(inner_failed);
}

TEST_F(MappedFileTest, TruncatedUnderSeveralThreads) {
  constexpr int kThreads = 4;
  const auto cut = Map("cut");
  const auto whole = Map("whole");
  std::atomic<int> warmed_up{0};
  std::atomic<int> lost{0};
  std::atomic<bool> stop{false};
  Notification all_warm;
  std::vector<std::thread> threads;
  // These read the file that is cut, until it is.
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      bool first = true;
      unsigned sum = 0;
      while (!stop && SumPages(*cut, &sum).ok()) {
        if (std::exchange(first, false) && ++warmed_up == kThreads) {
          all_warm.Notify();
        }
      }
      if (!stop) ++lost;
    });
  }
  // This one reads another and must not notice.
  std::atomic<bool> stop_reader{false};
  std::atomic<int> disturbed{0};
  std::thread reader([&] {
    unsigned sum = 0;
    while (!stop_reader) {
      if (!SumPages(*whole, &sum).ok() || sum != 64) ++disturbed;
    }
  });
  EXPECT_TRUE(all_warm.WaitUntil(absl::Now() + absl::Seconds(60)));
  EXPECT_EQ(truncate(cut->path().c_str(), 0), 0);
  if (warmed_up < kThreads) stop = true;
  for (std::thread& thread : threads) thread.join();
  stop_reader = true;
  reader.join();
  EXPECT_EQ(lost, kThreads);
  EXPECT_EQ(disturbed, 0);
}

// A fault that nobody guards ends the process, as without our handler.
TEST_F(MappedFileTest, UnguardedFaultIsNotSwallowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto file = Map("a");
  const auto other = Map("b");
  const auto touch = [&] {
    return *const_cast<const volatile std::byte*>(&file->bytes()[0]);
  };
  EXPECT_DEATH(
      {
        (void)truncate(file->path().c_str(), 0);
        touch();
      },
      "");
  // Nor is one of another file than the guarded one.
  EXPECT_DEATH(
      {
        (void)truncate(file->path().c_str(), 0);
        (void)other->Guarded([&] { touch(); });
      },
      "");
}

}  // namespace
}  // namespace engram
