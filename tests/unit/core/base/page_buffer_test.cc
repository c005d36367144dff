#include "core/base/page_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

constexpr size_t kHugePageBytes = size_t{2} << 20;

TEST(PageBufferTest, IsZeroedAlignedAndWritable) {
  for (const size_t size :
       {size_t{1}, size_t{4097}, kHugePageBytes, 3 * kHugePageBytes + 5}) {
    auto buffer = PageBuffer::Allocate(size);
    ASSERT_THAT(buffer, IsOk());
    const absl::Span<std::byte> bytes = buffer->bytes();
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % kHugePageBytes, 0U);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    std::memset(bytes.data(), 0xA5, size);
    EXPECT_EQ(std::as_const(*buffer).bytes().back(), std::byte{0xA5});
    EXPECT_LE(buffer->HugeBytes(), size + kHugePageBytes);
    EXPECT_EQ(buffer->HugeBytes() % 4096, 0U);
  }
}

TEST(PageBufferTest, EmptyBuffer) {
  const auto buffer = PageBuffer::Allocate(0);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_TRUE(buffer->bytes().empty());
  EXPECT_EQ(buffer->HugeBytes(), 0U);
}

TEST(PageBufferTest, MovesHandTheMemoryOn) {
  auto first = PageBuffer::Allocate(100);
  auto second = PageBuffer::Allocate(200);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  first->bytes()[99] = std::byte{7};
  const std::byte* const data = first->bytes().data();
  PageBuffer moved = *std::move(first);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(moved.bytes()[99], std::byte{7});
  *second = std::move(moved);
  EXPECT_EQ(second->bytes().data(), data);
  EXPECT_EQ(second->bytes().size(), 100U);
}

TEST(PageBufferTest, MoreThanTheMachineHasIsRefused) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - kHugePageBytes,
                            SIZE_MAX - 2 * kHugePageBytes, SIZE_MAX / 2}) {
    EXPECT_THAT(PageBuffer::Allocate(size),
                IsError(absl::StatusCode::kResourceExhausted,
                        HasSubstr(std::to_string(size))));
  }
}

}  // namespace
}  // namespace engram
