#include "compute/hash/flat_tokens.h"

#include <cstdint>
#include <vector>

#include "compute/hash/hash_args.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kNone = kBlockedToken;

TEST(FlatTokensTest, LookbackIsAlwaysOfOneLength) {
  const std::vector<uint32_t> first = {7, 8};
  const std::vector<uint32_t> second = {9};
  const std::vector<uint32_t> lookback = {1, 2, 3};
  const std::vector<uint32_t> short_lookback = {4};
  std::vector<TokenChunk> chunks(3);
  chunks[0].tokens = first;
  chunks[1].start_position = 1;
  chunks[1].tokens = second;
  chunks[1].lookback = short_lookback;
  chunks[2].start_position = 10;
  chunks[2].tokens = first;
  chunks[2].lookback = lookback;
  const FlatSizes sizes = FlatSizesOf(chunks, 3);
  ASSERT_EQ(sizes.slots, 14U);
  ASSERT_EQ(sizes.tokens, 5U);
  std::vector<uint32_t> ids(sizes.slots);
  std::vector<uint32_t> positions(sizes.tokens);
  FlattenTokens(chunks, 3, absl::MakeSpan(ids), absl::MakeSpan(positions));
  EXPECT_THAT(ids, ElementsAre(kNone, kNone, kNone, 7, 8,  //
                               kNone, kNone, 4, 9,         //
                               1, 2, 3, 7, 8));
  EXPECT_THAT(positions, ElementsAre(3, 4, 8, 12, 13));
}

TEST(FlatTokensTest, DeadTokensAreBlocked) {
  const std::vector<uint32_t> tokens = {7, 8, 9};
  const std::vector<uint8_t> mask = {1, 0, 1};
  const std::vector<uint32_t> lookback = {5, 6};
  const std::vector<uint8_t> lookback_mask = {0, 1};
  TokenChunk chunk;
  chunk.start_position = 2;
  chunk.tokens = tokens;
  chunk.mask = mask;
  chunk.lookback = lookback;
  chunk.lookback_mask = lookback_mask;
  std::vector<uint32_t> ids(5);
  std::vector<uint32_t> positions(3);
  FlattenTokens({&chunk, 1}, 2, absl::MakeSpan(ids), absl::MakeSpan(positions));
  EXPECT_THAT(ids, ElementsAre(kNone, 6, 7, kNone, 9));
  EXPECT_THAT(positions, ElementsAre(2, 3, 4));
}

TEST(FlatTokensTest, NoChunksAreNothing) {
  const FlatSizes sizes = FlatSizesOf({}, 3);
  EXPECT_EQ(sizes.slots, 0U);
  EXPECT_EQ(sizes.tokens, 0U);
  FlattenTokens({}, 3, {}, {});
}

}  // namespace
}  // namespace engram
