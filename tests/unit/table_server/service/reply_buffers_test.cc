#include "table_server/service/reply_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace engram {
namespace {

constexpr size_t kRowsBytes = 100'000;
constexpr size_t kSlabBytes = 2 << 20;

std::string Text(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

void Fill(absl::Span<std::byte> bytes, char value) {
  std::memset(bytes.data(), value, bytes.size());
}

TEST(ReplyBuffersTest, TheSliceIsTheRowsWithWhatWasWrittenAround) {
  ReplyBuffers buffers(
      {.rows_bytes = kRowsBytes, .max_pooled_bytes = kSlabBytes});
  for (const size_t rows_bytes : {size_t{0}, size_t{5}, kRowsBytes}) {
    ReplyBuffer buffer = buffers.Take(rows_bytes);
    Fill(buffer.rows(), 'r');
    buffer.head().back() = std::byte{'h'};
    buffer.tail()[0] = std::byte{'t'};
    buffer.tail()[1] = std::byte{'u'};
    ASSERT_EQ(buffer.rows().size(), rows_bytes);
    const grpc::Slice slice =
        std::move(buffer).Release({.before = 1, .after = 2});
    EXPECT_EQ(Text(slice), "h" + std::string(rows_bytes, 'r') + "tu");
  }
}

TEST(ReplyBuffersTest, TakesTheLastBufferAgain) {
  ReplyBuffers buffers(
      {.rows_bytes = kRowsBytes, .max_pooled_bytes = kSlabBytes});
  const std::byte* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    ReplyBuffer buffer = buffers.Take(kRowsBytes);
    if (first == nullptr) first = buffer.rows().data();
    EXPECT_EQ(buffer.rows().data(), first);
    std::move(buffer).Release({});
  }
  EXPECT_EQ(buffers.pooled_bytes(), kSlabBytes);
}

TEST(ReplyBuffersTest, KeepsNoMoreThanItsLimit) {
  ReplyBuffers buffers(
      {.rows_bytes = kRowsBytes, .max_pooled_bytes = 2 * kSlabBytes});
  std::vector<ReplyBuffer> taken;
  for (int i = 0; i < 100; ++i) {
    taken.push_back(buffers.Take(kRowsBytes));
    Fill(taken.back().rows(), static_cast<char>(i));
  }
  for (int i = 0; i < 100; ++i) {
    const absl::Span<std::byte> rows = taken[i].rows();
    EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [&](std::byte b) {
      return b == static_cast<std::byte>(i);
    })) << i;
  }
  EXPECT_EQ(buffers.pooled_bytes(), 2 * kSlabBytes);
}

TEST(ReplyBuffersTest, SmallRepliesTakeNothingOfThePool) {
  ReplyBuffers buffers(
      {.rows_bytes = kRowsBytes, .max_pooled_bytes = kSlabBytes});
  buffers.Take(264);
  EXPECT_EQ(buffers.pooled_bytes(), 0u);
}

TEST(ReplyBuffersTest, BuffersMayOutliveThePoolOnAnyThread) {
  std::optional<grpc::Slice> slice;
  {
    ReplyBuffers buffers(
        {.rows_bytes = kRowsBytes, .max_pooled_bytes = kSlabBytes});
    ReplyBuffer buffer = buffers.Take(kRowsBytes);
    Fill(buffer.rows(), 'x');
    slice = std::move(buffer).Release({});
  }
  EXPECT_EQ(Text(*slice), std::string(kRowsBytes, 'x'));
  std::thread([&] { slice.reset(); }).join();
}

}  // namespace
}  // namespace engram
