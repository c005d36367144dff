#include "compute/block/token_bucket.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::ElementsAre;

std::set<size_t> Buckets(size_t tile_tokens) {
  std::set<size_t> buckets;
  for (size_t tokens = 1; tokens <= tile_tokens; ++tokens) {
    if (const auto bucket = TokenBucket(tokens, tile_tokens)) {
      buckets.insert(*bucket);
    }
  }
  return buckets;
}

TEST(TokenBucketTest, AreFew) {
  EXPECT_THAT(Buckets(1024),
              ElementsAre(1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256));
  EXPECT_THAT(Buckets(20), ElementsAre(1, 2, 4, 8, 16, 20));
  EXPECT_THAT(Buckets(1), ElementsAre(1));
}

TEST(TokenBucketTest, HoldTheirTokensInTheBuffersWithLittlePadding) {
  for (const size_t tile : {1, 2, 3, 7, 20, 100, 256, 257, 4096}) {
    size_t last = 0;
    for (size_t tokens = 1; tokens <= std::min<size_t>(tile, kMaxGraphTokens);
         ++tokens) {
      const std::optional<size_t> bucket = TokenBucket(tokens, tile);
      ASSERT_TRUE(bucket.has_value()) << tokens;
      EXPECT_GE(*bucket, tokens);
      EXPECT_LE(*bucket, tile);
      EXPECT_GE(*bucket, last);
      EXPECT_LT(*bucket, 2 * tokens);
      EXPECT_TRUE(tokens <= 16 || *bucket * 2 < 3 * tokens) << tokens;
      EXPECT_EQ(TokenBucket(*bucket, tile), bucket);
      last = *bucket;
    }
  }
}

TEST(TokenBucketTest, LargeTilesHaveNone) {
  EXPECT_EQ(TokenBucket(kMaxGraphTokens, 4096), kMaxGraphTokens);
  EXPECT_EQ(TokenBucket(kMaxGraphTokens + 1, 4096), std::nullopt);
  EXPECT_EQ(TokenBucket(4096, 4096), std::nullopt);
}

}  // namespace
}  // namespace engram
