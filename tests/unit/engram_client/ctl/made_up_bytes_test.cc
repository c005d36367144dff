#include "engram_client/ctl/made_up_bytes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

std::vector<uint8_t> Random(uint64_t seed, uint64_t stream, uint64_t offset,
                            size_t size) {
  std::vector<uint8_t> bytes(size, 0xEE);
  FillRandom(seed, stream, offset, absl::MakeSpan(bytes));
  return bytes;
}

TEST(FillRandomTest, PiecesMakeTheWhole) {
  const size_t size = 3 * kMadeUpBlockBytes + 61;
  const std::vector<uint8_t> whole = Random(5, 1, 0, size);
  for (const uint64_t begin : {1, 2, 3}) {
    const uint64_t offset = begin * kMadeUpBlockBytes;
    const std::vector<uint8_t> piece = Random(5, 1, offset, size - offset);
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + offset));
  }
}

TEST(FillRandomTest, SeedsAndStreamsDiffer) {
  const std::set<std::vector<uint8_t>> all = {
      Random(5, 1, 0, 64), Random(6, 1, 0, 64), Random(5, 2, 0, 64),
      Random(5, 1, kMadeUpBlockBytes, 64)};
  EXPECT_EQ(all.size(), 4);
}

TEST(FillRandomTest, EveryByteValueIsAboutAsFrequent) {
  std::vector<size_t> counts(256);
  const size_t size = 16 * kMadeUpBlockBytes;
  for (const uint8_t byte : Random(1, 0, 0, size)) ++counts[byte];
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  EXPECT_GT(*low, size / 256 * 9 / 10);
  EXPECT_LT(*high, size / 256 * 11 / 10);
}

TEST(ReplaceNanCodesTest, ChangesTheTwoNansAlone) {
  std::vector<uint8_t> codes(256 + 5);
  std::iota(codes.begin(), codes.begin() + 256, 0);
  std::fill(codes.begin() + 256, codes.end(), 0xFF);
  ReplaceNanCodes(absl::MakeSpan(codes));
  for (size_t code = 0; code < 256; ++code) {
    const size_t wanted = code == 0x7F ? 0x77 : code == 0xFF ? 0xF7 : code;
    EXPECT_EQ(codes[code], wanted);
  }
  for (size_t i = 256; i < codes.size(); ++i) EXPECT_EQ(codes[i], 0xF7);
}

TEST(SpreadOverTest, CoversTheRange) {
  std::vector<uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), 0);
  SpreadOver(113, 7, absl::MakeSpan(bytes));
  EXPECT_EQ(std::set<uint8_t>(bytes.begin(), bytes.end()),
            (std::set<uint8_t>{113, 114, 115, 116, 117, 118, 119}));
}

}  // namespace
}  // namespace engram::ctl
