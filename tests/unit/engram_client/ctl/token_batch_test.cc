#include "engram_client/ctl/token_batch.h"

#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/test_file.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<int64_t> kTokens = {10, 11, 12, 13, 14, 20, 21, 22, 23, 24};
const std::vector<uint8_t> kMask = {1, 0, 1, 1, 1, 1, 1, 1, 0, 1};

class TokenBatchTest : public testing::Test {
 protected:
  absl::StatusOr<TokenBatch> Read(std::vector<OutputTensor> tensors) {
    return ReadTokenBatch(MakeFile(dir_, std::move(tensors)));
  }

  test::TempDir dir_;
};

TEST_F(TokenBatchTest, ReadsTokensAndMask) {
  const absl::StatusOr<TokenBatch> batch =
      Read({{{"tokens", "I64", {2, 5}}, BytesOf(kTokens)},
            {{"mask", "BOOL", {2, 5}}, BytesOf(kMask)}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->sequences, 2);
  EXPECT_EQ(batch->length, 5);
  EXPECT_EQ(batch->tokens, kTokens);
  EXPECT_EQ(batch->mask, kMask);
  EXPECT_FALSE(batch->live(0, 1));
  EXPECT_TRUE(batch->live(1, 0));
}

TEST_F(TokenBatchTest, WithoutMaskAllAreLive) {
  const absl::StatusOr<TokenBatch> batch =
      Read({{{"tokens", "I64", {2, 5}}, BytesOf(kTokens)}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->mask, IsEmpty());
  EXPECT_TRUE(batch->live(1, 3));
}

TEST_F(TokenBatchTest, RefusesOtherTensors) {
  const std::vector<int32_t> narrow(10);
  EXPECT_THAT(Read({{{"mask", "BOOL", {2, 5}}, BytesOf(kMask)}}).status(),
              IsError(StatusCode::kNotFound, HasSubstr("tokens")));
  EXPECT_THAT(Read({{{"tokens", "I32", {2, 5}}, BytesOf(narrow)}}).status(),
              IsError(StatusCode::kInvalidArgument,
                      HasSubstr("tensor tokens is I32, not I64")));
  EXPECT_THAT(Read({{{"tokens", "I64", {10}}, BytesOf(kTokens)}}).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("2 dimensions")));
  EXPECT_THAT(Read({{{"tokens", "I64", {2, 0}}, {}}}).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("[2, 0]")));
  EXPECT_THAT(
      Read({{{"tokens", "I64", {2, 5}}, BytesOf(kTokens)},
            {{"mask", "BOOL", {5, 2}}, BytesOf(kMask)}})
          .status(),
      IsError(StatusCode::kInvalidArgument,
              HasSubstr("tensor mask has the shape [5, 2], not [2, 5]")));
  EXPECT_THAT(Read({{{"tokens", "I64", {2, 5}}, BytesOf(kTokens)},
                    {{"mask", "U8", {2, 5}}, BytesOf(kMask)}})
                  .status(),
              IsError(StatusCode::kInvalidArgument,
                      HasSubstr("tensor mask is U8, not BOOL")));
}

TEST_F(TokenBatchTest, OnlyDeadTokensMayBeNoIds) {
  const std::vector<int64_t> tokens = {1, -1, int64_t{1} << 32, 4};
  EXPECT_THAT(Read({{{"tokens", "I64", {1, 4}}, BytesOf(tokens)}}).status(),
              IsError(StatusCode::kInvalidArgument,
                      HasSubstr("sequence 0, position 1 is -1")));
  const std::vector<uint8_t> mask = {1, 0, 0, 1};
  const absl::StatusOr<TokenBatch> batch =
      Read({{{"tokens", "I64", {1, 4}}, BytesOf(tokens)},
            {{"mask", "BOOL", {1, 4}}, BytesOf(mask)}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const StepSequence step = SequenceOf(*batch, 0, {0, 4}, 3);
  EXPECT_THAT(step.token_ids, ElementsAre(1, 0, 0, 4));
  EXPECT_THAT(step.mask, ElementsAre(1, 0, 0, 1));
}

const TokenBatch kBatch = {
    .sequences = 2, .length = 5, .tokens = kTokens, .mask = kMask};

TEST_F(TokenBatchTest, FirstChunkHasNoLookback) {
  const StepSequence step = SequenceOf(kBatch, 0, {0, 2}, 3);
  EXPECT_EQ(step.start_position, 0);
  EXPECT_THAT(step.token_ids, ElementsAre(10, 11));
  EXPECT_THAT(step.mask, ElementsAre(1, 0));
  EXPECT_THAT(step.lookback, IsEmpty());
  EXPECT_THAT(step.lookback_mask, IsEmpty());
}

TEST_F(TokenBatchTest, LookbackStopsAtTheStart) {
  const StepSequence step = SequenceOf(kBatch, 0, {2, 3}, 3);
  EXPECT_EQ(step.start_position, 2);
  EXPECT_THAT(step.token_ids, ElementsAre(12, 13, 14));
  EXPECT_THAT(step.lookback, ElementsAre(10, 11));
  EXPECT_THAT(step.lookback_mask, ElementsAre(1, 0));
}

TEST_F(TokenBatchTest, LookbackIsOldestFirstAndBounded) {
  const StepSequence step = SequenceOf(kBatch, 1, {4, 1}, 2);
  EXPECT_EQ(step.start_position, 4);
  EXPECT_THAT(step.token_ids, ElementsAre(24));
  EXPECT_THAT(step.lookback, ElementsAre(22, 23));
  EXPECT_THAT(step.lookback_mask, ElementsAre(1, 0));
}

TEST_F(TokenBatchTest, NoMaskNoMasks) {
  TokenBatch batch = kBatch;
  batch.mask.clear();
  const StepSequence step = SequenceOf(batch, 1, {3, 2}, 3);
  EXPECT_THAT(step.lookback, ElementsAre(20, 21, 22));
  EXPECT_THAT(step.mask, IsEmpty());
  EXPECT_THAT(step.lookback_mask, IsEmpty());
}

}  // namespace
}  // namespace engram::ctl
