#include "core/base/thread_scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

constexpr size_t kHugePageBytes = size_t{2} << 20;

bool IsZero(absl::Span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte b) { return b == std::byte{0}; });
}

// Takes memory, looks whether it is new (zero), and writes all of it.
bool TakeAndWrite(size_t size_bytes) {
  auto scratch = ThreadScratch::Take(size_bytes);
  EXPECT_THAT(scratch, IsOk());
  if (!scratch.ok()) return false;
  EXPECT_EQ(scratch->bytes().size(), size_bytes);
  const auto address = reinterpret_cast<uintptr_t>(scratch->bytes().data());
  EXPECT_EQ(address % kHugePageBytes, 0U);
  const bool is_new = IsZero(scratch->bytes());
  std::memset(scratch->bytes().data(), 0xA5, size_bytes);
  return is_new;
}

class ThreadScratchTest : public ::testing::Test {
 protected:
  ~ThreadScratchTest() override { ThreadScratch::Free(); }
};

TEST_F(ThreadScratchTest, IsFoundAgainUnlessItIsTooSmall) {
  EXPECT_TRUE(TakeAndWrite(3000));
  EXPECT_FALSE(TakeAndWrite(2000));
  EXPECT_FALSE(TakeAndWrite(3000));
  EXPECT_TRUE(TakeAndWrite(kHugePageBytes + 1));
  EXPECT_FALSE(TakeAndWrite(1));
}

TEST_F(ThreadScratchTest, IsNewAfterFree) {
  EXPECT_TRUE(TakeAndWrite(3000));
  ThreadScratch::Free();
  EXPECT_TRUE(TakeAndWrite(3000));
}

TEST_F(ThreadScratchTest, BelongsToItsThread) {
  auto mine = ThreadScratch::Take(100);
  ASSERT_THAT(mine, IsOk());
  std::memset(mine->bytes().data(), 1, 100);
  std::thread([] { EXPECT_TRUE(TakeAndWrite(100)); }).join();
  EXPECT_EQ(mine->bytes()[99], std::byte{1});
}

TEST_F(ThreadScratchTest, MovesAsOne) {
  auto first = ThreadScratch::Take(100);
  ASSERT_THAT(first, IsOk());
  const std::byte* const data = first->bytes().data();
  {
    ThreadScratch second = *std::move(first);
    EXPECT_EQ(second.bytes().data(), data);
    EXPECT_DEATH(ThreadScratch::Take(1).IgnoreError(), "taken");
  }
  EXPECT_FALSE(ThreadScratch::Take(100)->bytes().empty());
}

TEST_F(ThreadScratchTest, SaysWhatTheKernelRefuses) {
  EXPECT_THAT(ThreadScratch::Take(SIZE_MAX),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("18446744073709551615")));
  EXPECT_TRUE(TakeAndWrite(100));
}

}  // namespace
}  // namespace engram
