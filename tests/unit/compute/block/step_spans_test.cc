#include "compute/block/step_spans.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Memory for a step of the tiny model, all outputs wanted and poisoned.
class StepSpansTest : public testing::Test {
 protected:
  void SetTokens(size_t tokens, size_t live) {
    streams_.resize(tokens * config_.hc_mult * config_.dim * 2);
    for (size_t i = 0; i < streams_.size(); ++i) streams_[i] = std::byte(i * 7);
    rows_.resize(live * config_.columns() * format_.row_bytes());
    out_.assign(streams_.size(), std::byte{0xA5});
    gate_.assign(tokens * config_.hc_mult, -7);
    value_.assign(tokens * config_.dim, 0xA5A5);
    kv_.assign(tokens * config_.wkv_out(), 0xA5A5);
  }
  BlockOutputs Outputs() {
    return {absl::MakeSpan(out_), absl::MakeSpan(gate_), absl::MakeSpan(value_),
            absl::MakeSpan(kv_)};
  }
  absl::StatusOr<StepSpans> Create() {
    return StepSpans::Create(config_, format_,
                             {StreamDtype::kBf16, rows_, streams_, mask_},
                             Outputs());
  }

  const EngramConfig config_ = PresetConfig("tiny").value();
  const RowFormat format_ =
      RowFormat::Create("F8_E4M3", "F8_E8M0", config_.head_dim, 32).value();
  std::vector<std::byte> streams_;
  std::vector<std::byte> rows_;
  std::vector<uint8_t> mask_;
  std::vector<std::byte> out_;
  std::vector<float> gate_;
  std::vector<uint16_t> value_;
  std::vector<uint16_t> kv_;
};

TEST_F(StepSpansTest, AllLiveWithoutAMask) {
  SetTokens(3, 3);
  const auto spans = Create();
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_EQ(spans->tokens(), 3);
  EXPECT_THAT(spans->live(), ElementsAre(0, 1, 2));
  EXPECT_EQ(spans->row_bytes() * 3, rows_.size());
  EXPECT_EQ(spans->stream_bytes() * 3, streams_.size());
  spans->WriteDeadTokens();
  EXPECT_THAT(out_, Each(std::byte{0xA5}));
}

TEST_F(StepSpansTest, SlicesByTokenAndByLiveToken) {
  SetTokens(4, 2);
  mask_ = {0, 1, 0, 255};
  const auto spans = Create();
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_THAT(spans->live(), ElementsAre(1, 3));
  EXPECT_EQ(spans->Rows(1, 1).data(), rows_.data() + rows_.size() / 2);
  EXPECT_EQ(spans->Rows(0, 2).size(), rows_.size());
  EXPECT_EQ(spans->Streams(3).data(),
            streams_.data() + streams_.size() / 4 * 3);
  EXPECT_EQ(spans->Part(spans->outputs().gate, 2).data(),
            gate_.data() + 2 * config_.hc_mult);
  EXPECT_EQ(spans->Part(spans->outputs().kv, 1).size(), config_.wkv_out());
  EXPECT_TRUE(spans->Part(absl::Span<float>(), 1).empty());
}

TEST_F(StepSpansTest, WritesDeadTokensOnly) {
  SetTokens(3, 1);
  mask_ = {0, 1, 0};
  const auto spans = Create();
  ASSERT_TRUE(spans.ok()) << spans.status();
  spans->WriteDeadTokens();
  for (size_t token = 0; token < 3; ++token) {
    const BlockOutputs& outputs = spans->outputs();
    if (mask_[token] == 0) {
      EXPECT_EQ(spans->Part(outputs.streams, token), spans->Streams(token));
      EXPECT_THAT(spans->Part(outputs.gate, token), Each(0));
      EXPECT_THAT(spans->Part(outputs.value, token), Each(0));
      EXPECT_THAT(spans->Part(outputs.kv, token), Each(0));
    } else {
      EXPECT_THAT(spans->Part(outputs.streams, token), Each(std::byte{0xA5}));
      EXPECT_THAT(spans->Part(outputs.gate, token), Each(-7));
      EXPECT_THAT(spans->Part(outputs.value, token), Each(0xA5A5));
      EXPECT_THAT(spans->Part(outputs.kv, token), Each(0xA5A5));
    }
  }
}

TEST_F(StepSpansTest, NothingAtAll) {
  const auto spans = Create();
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_EQ(spans->tokens(), 0);
  spans->WriteDeadTokens();
}

TEST_F(StepSpansTest, RefusesRowsOfDeadTokens) {
  SetTokens(2, 2);
  mask_ = {1, 0};
  const auto spans = Create();
  EXPECT_TRUE(absl::IsInvalidArgument(spans.status()));
  EXPECT_THAT(std::string(spans.status().message()),
              HasSubstr("packed rows for 1 live tokens"));
  EXPECT_THAT(out_, Each(std::byte{0xA5}));
}

TEST(CheckLayerIndexTest, NamesBoth) {
  EXPECT_EQ(CheckLayerIndex(1, 2), absl::OkStatus());
  EXPECT_EQ(CheckLayerIndex(2, 2).message(), "layer index 2 of a model with 2");
}

}  // namespace
}  // namespace engram
