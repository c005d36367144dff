#include "engram_client/compute/step_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr StepShape kShape = {.tokens = 3, .hc_mult = 2, .dim = 4};

TEST(StepMessagesTest, SequencesKeepEveryField) {
  const std::vector<StepSequence> sequences = {{.start_position = 7,
                                                .token_ids = {1, 2},
                                                .lookback = {3},
                                                .mask = {1, 0},
                                                .lookback_mask = {5}},
                                               {.token_ids = {9}}};
  google::protobuf::RepeatedPtrField<v1::Sequence> out;
  FillSequences(sequences, &out);
  ASSERT_EQ(out.size(), 2);
  EXPECT_EQ(out[0].start_position(), 7);
  EXPECT_THAT(out[0].token_ids(), ElementsAre(1, 2));
  EXPECT_THAT(out[0].lookback(), ElementsAre(3));
  EXPECT_THAT(out[0].mask(), ElementsAre(true, false));
  EXPECT_THAT(out[0].lookback_mask(), ElementsAre(true));
  EXPECT_EQ(out[1].mask_size(), 0);
}

TEST(StepMessagesTest, ChunksAreWholeTokens) {
  EXPECT_EQ(kShape.token_stream_bytes(), 16);
  EXPECT_EQ(TokensPerChunk(kShape, 47), 2);
  EXPECT_EQ(TokensPerChunk(kShape, 48), 3);
  EXPECT_EQ(TokensPerChunk(kShape, 1), 1);
}

TEST(StepMessagesTest, SizesOfBuffersAreChecked) {
  std::vector<std::byte> streams(48);
  std::vector<std::byte> out(48);
  StepLayerIo io{.layer = LayerId{14}, .streams = streams};
  EXPECT_THAT(std::string(CheckIo(kShape, io).message()),
              HasSubstr("layer 14: bytes of streams_out of 0; for 3 tokens it "
                        "must be 48"));
  io.streams_out = absl::MakeSpan(out);
  EXPECT_TRUE(CheckIo(kShape, io).ok());
  io.streams.remove_suffix(1);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckIo(kShape, io)));

  StepShape contribution = kShape;
  contribution.what = StepReturn::kContribution;
  std::vector<float> gate(6);
  std::vector<uint16_t> value(12);
  io = {.layer = LayerId{14}, .streams = streams};
  EXPECT_TRUE(absl::IsInvalidArgument(CheckIo(contribution, io)));
  io.gate = absl::MakeSpan(gate);
  io.value = absl::MakeSpan(value).subspan(1);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckIo(contribution, io)));
  io.value = absl::MakeSpan(value);
  EXPECT_TRUE(CheckIo(contribution, io).ok());
}

TEST(StepMessagesTest, ResultsGoWhereTheirTokensAre) {
  std::vector<std::byte> out(48, std::byte{0xEE});
  const StepLayerIo io{.layer = LayerId{1}, .streams_out = absl::MakeSpan(out)};
  v1::LayerResult result;
  result.set_layer_id(1);
  result.set_streams(std::string(16, 'x'));
  ASSERT_TRUE(CopyResult(kShape, result, 1, 1, io).ok());
  EXPECT_EQ(out[15], std::byte{0xEE});
  EXPECT_EQ(out[16], std::byte{'x'});
  EXPECT_EQ(out[31], std::byte{'x'});
  EXPECT_EQ(out[32], std::byte{0xEE});

  // Whatever does not fit is an error, never a write out of bounds.
  EXPECT_EQ(CopyResult(kShape, result, 1, 2, io).code(),
            absl::StatusCode::kInternal);
  result.set_layer_id(2);
  EXPECT_EQ(CopyResult(kShape, result, 1, 1, io).code(),
            absl::StatusCode::kInternal);
}

TEST(StepMessagesTest, AModelMustNameWhatAStepNeeds) {
  EXPECT_FALSE(ToModelInfo(v1::GetModelResponse()).ok());
  v1::GetModelResponse response;
  response.set_config_json("{");
  EXPECT_FALSE(ToModelInfo(response).ok());
}

}  // namespace
}  // namespace engram
