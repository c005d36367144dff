#include "core/base/page_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

// Memory of `bytes` that the process has, not only addresses.
size_t ResidentBytes(absl::Span<const std::byte> bytes) {
  const size_t page = PageBuffer::PageBytes();
  std::vector<unsigned char> pages((bytes.size() + page - 1) / page);
  auto* const data = const_cast<std::byte*>(bytes.data());
  EXPECT_EQ(mincore(data, bytes.size(), pages.data()), 0);
  return page * static_cast<size_t>(std::count_if(
                    pages.begin(), pages.end(),
                    [](unsigned char state) { return (state & 1) != 0; }));
}

TEST(PageBufferTest, AReservationGrowsInPlace) {
  // More than a machine for tests has.
  auto buffer = PageBuffer::Reserve(size_t{1} << 40);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_TRUE(buffer->bytes().empty());
  EXPECT_EQ(buffer->reserved().size(), size_t{1} << 40);
  const std::byte* const data = buffer->reserved().data();
  ASSERT_THAT(buffer->Grow(5), IsOk());
  buffer->bytes()[4] = std::byte{9};
  for (const size_t size :
       {size_t{6}, kHugePageBytes, kHugePageBytes + 1, 3 * kHugePageBytes}) {
    ASSERT_THAT(buffer->Grow(size), IsOk());
    EXPECT_EQ(buffer->bytes().data(), data);
    ASSERT_EQ(buffer->bytes().size(), size);
    EXPECT_EQ(buffer->bytes()[4], std::byte{9});
    EXPECT_EQ(buffer->bytes().back(), std::byte{0});
    buffer->bytes().back() = std::byte{1};
  }
}

TEST(PageBufferDeathTest, WhatIsNotGrownToCannotBeUsed) {
  auto buffer = PageBuffer::Reserve(2 * kHugePageBytes);
  ASSERT_THAT(buffer, IsOk());
  ASSERT_THAT(buffer->Grow(kHugePageBytes), IsOk());
  volatile std::byte* const beyond = buffer->reserved().data() + kHugePageBytes;
  EXPECT_DEATH(*beyond = std::byte{1}, "");
  EXPECT_DEATH((void)buffer->Grow(kHugePageBytes - 1), "size_bytes");
  EXPECT_DEATH((void)buffer->Grow(2 * kHugePageBytes + 1), "size_bytes");
}

TEST(PageBufferTest, DiscardedPagesAreGoneAndZero) {
  const size_t page = PageBuffer::PageBytes();
  const size_t size = 2 * kHugePageBytes;
  auto buffer = PageBuffer::Allocate(size);
  ASSERT_THAT(buffer, IsOk());
  const absl::Span<std::byte> bytes = buffer->bytes();
  std::memset(bytes.data(), 0xA5, size);
  EXPECT_EQ(ResidentBytes(bytes), size);
  EXPECT_THAT(buffer->Discard({}), IsOk());
  ASSERT_THAT(buffer->Discard(bytes.subspan(page, kHugePageBytes)), IsOk());
  EXPECT_EQ(ResidentBytes(bytes), size - kHugePageBytes);
  EXPECT_EQ(bytes[page - 1], std::byte{0xA5});
  EXPECT_EQ(bytes[page + kHugePageBytes], std::byte{0xA5});
  EXPECT_EQ(bytes[page], std::byte{0});
  EXPECT_EQ(bytes[page + kHugePageBytes - 1], std::byte{0});
  bytes[page] = std::byte{1};
  EXPECT_EQ(bytes[page], std::byte{1});
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
