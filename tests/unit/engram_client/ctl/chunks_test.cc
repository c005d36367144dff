#include "engram_client/ctl/chunks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using test::IsError;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseChunksTest, EmptyIsOneChunk) {
  EXPECT_THAT(*ParseChunks("", 16), ElementsAre(Chunk{0, 16}));
}

TEST(ParseChunksTest, ChunksFollowOneAnother) {
  EXPECT_THAT(*ParseChunks("5,1,1,9", 16),
              ElementsAre(Chunk{0, 5}, Chunk{5, 1}, Chunk{6, 1}, Chunk{7, 9}));
}

TEST(ParseChunksTest, RefusesWhatIsNotACount) {
  for (const char* text : {"5,,11", "5,x", "5,-1,12", "0,16", "16,", "1.5,14.5",
                           "99999999999999999999"}) {
    EXPECT_THAT(ParseChunks(text, 16).status(),
                IsError(absl::StatusCode::kInvalidArgument,
                        HasSubstr("not a number of tokens of 1 or more")))
        << text;
  }
}

TEST(ParseChunksTest, NamesTheSumAndTheLength) {
  EXPECT_THAT(
      ParseChunks("5,1", 16).status(),
      IsError(absl::StatusCode::kInvalidArgument,
              HasSubstr("--chunks 5,1 makes 6 tokens, but the sequences have "
                        "16")));
  EXPECT_THAT(ParseChunks("10,18446744073709551610", 16).status(),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("which have 16 tokens")));
}

}  // namespace
}  // namespace engram::ctl
