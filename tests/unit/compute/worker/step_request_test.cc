#include "compute/worker/step_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/wire/error_detail.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::FakeBlock;
using test::MakeSequence;
using test::MakeSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMaxTokens = 8;

class StepRequestTest : public ::testing::Test {
 protected:
  absl::Status StatusOf(StepSpec spec) {
    return StepRequest::Create(block_, kMaxTokens, std::move(spec)).status();
  }
  void ExpectInvalid(StepSpec spec, const std::string& message) {
    const absl::Status status = StatusOf(std::move(spec));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  FakeBlock block_;
};

TEST_F(StepRequestTest, JoinsSequencesAndCountsLiveTokens) {
  StepSpec spec = MakeSpec(block_, {1, 2, 3}, {true, false, true});
  *spec.sequences.Add() = MakeSequence({4, 5});
  const auto request = StepRequest::Create(block_, kMaxTokens, spec);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->tokens(), 5);
  EXPECT_EQ(request->live_tokens(), 4);
  EXPECT_THAT(request->mask(), ElementsAre(1, 0, 1, 1, 1));
  EXPECT_EQ(request->LiveBefore(0), 0);
  EXPECT_EQ(request->LiveBefore(2), 1);
  EXPECT_EQ(request->LiveBefore(4), 3);
  EXPECT_THAT(request->sequence(1).tokens, ElementsAre(4, 5));
}

TEST_F(StepRequestTest, AMaskOfLiveTokensIsNoMask) {
  const auto request = StepRequest::Create(
      block_, kMaxTokens, MakeSpec(block_, {1, 2}, {true, true}));
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->mask().empty());
  EXPECT_EQ(request->LiveBefore(1), 1);
}

TEST_F(StepRequestTest, LayersAreFetchedInTheOrderOfTheModel) {
  StepSpec spec = MakeSpec(block_, {1});
  std::reverse(spec.layers.begin(), spec.layers.end());
  const auto request = StepRequest::Create(block_, kMaxTokens, spec);
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(std::is_sorted(request->layer_indices().begin(),
                             request->layer_indices().end()));
  EXPECT_EQ(request->layer_indices().size(), block_.config().layer_ids.size());
}

TEST_F(StepRequestTest, KindsMustBeGiven) {
  StepSpec spec = MakeSpec(block_, {1});
  spec.dtype = v1::STREAM_DTYPE_UNSPECIFIED;
  ExpectInvalid(spec, "dtype is 0");
  spec = MakeSpec(block_, {1});
  spec.dtype = static_cast<v1::StreamDtype>(9);
  ExpectInvalid(spec, "dtype is 9");
  spec = MakeSpec(block_, {1});
  spec.return_kind = v1::RETURN_KIND_UNSPECIFIED;
  ExpectInvalid(spec, "return_kind is 0");
}

TEST_F(StepRequestTest, LayersMustBeOfTheModelAndDistinct) {
  StepSpec spec = MakeSpec(block_, {1});
  spec.layers = {};
  ExpectInvalid(spec, "no layer");
  spec.layers = {LayerId{block_.config().layer_ids[0]},
                 LayerId{block_.config().layer_ids[0]}};
  ExpectInvalid(spec, "stands twice");
  spec.layers = {LayerId{999}};
  const absl::Status status = StatusOf(spec);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kUnknownLayer);
  EXPECT_EQ(MetadataOf(status, "layer"), "999");
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer 999"));
}

TEST_F(StepRequestTest, TimesOfLayersAreOfTheStepsLayersAboveZeroAndOnce) {
  const LayerId first{block_.config().layer_ids[0]};
  const LayerId second{block_.config().layer_ids[1]};
  StepSpec spec = MakeSpec(block_, {1});
  spec.layers = {second, first};
  spec.layer_timeouts = {{second, absl::Milliseconds(14)}};
  const auto request = StepRequest::Create(block_, kMaxTokens, spec);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->rows_timeouts(),
              ElementsAre(absl::InfiniteDuration(), absl::Milliseconds(14)));

  spec.layer_timeouts.push_back({second, absl::Milliseconds(15)});
  ExpectInvalid(spec, "stands twice in layer_timeouts");
  spec.layer_timeouts = {{first, absl::ZeroDuration()}};
  ExpectInvalid(spec, "it must be above 0");
  spec.layers = {second};
  spec.layer_timeouts = {{first, absl::Milliseconds(1)}};
  EXPECT_EQ(ReasonOf(StatusOf(spec)), ErrorReason::kUnknownLayer);
  spec.layer_timeouts = {{LayerId{999}, absl::Milliseconds(1)}};
  const absl::Status status = StatusOf(spec);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kUnknownLayer);
  EXPECT_EQ(MetadataOf(status, "layer"), "999");
}

TEST_F(StepRequestTest, ThereIsALimitOfTokens) {
  ExpectInvalid(MakeSpec(block_, {}), "no token");
  const absl::Status status =
      StatusOf(MakeSpec(block_, std::vector<uint32_t>(kMaxTokens + 1, 1)));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge) << status;
  EXPECT_EQ(MetadataOf(status, "value"), "9");
  EXPECT_EQ(MetadataOf(status, "limit"), "8");
  EXPECT_THAT(std::string(status.message()), HasSubstr("9 tokens"));
}

TEST_F(StepRequestTest, TokensAreBelowTheVocabulary) {
  const uint32_t vocab = block_.config().vocab_size;
  StepSpec spec = MakeSpec(block_, {1});
  *spec.sequences.Add() = MakeSequence({2, vocab});
  ExpectInvalid(spec, "sequence 1");
  ExpectInvalid(spec, std::to_string(vocab));
  // At dead positions any id will do.
  *spec.sequences.Mutable(1) = MakeSequence({2, vocab}, {true, false});
  EXPECT_TRUE(StatusOf(spec).ok());
}

TEST_F(StepRequestTest, LookbackHasExactlyItsLength) {
  const uint32_t wanted = block_.config().max_lookback();
  StepSpec spec = MakeSpec(block_, {1});
  v1::Sequence& sequence = *spec.sequences.Mutable(0);
  sequence.set_start_position(100);
  ExpectInvalid(spec, "lookback of 0");
  for (uint32_t i = 0; i < wanted; ++i) sequence.add_lookback(i);
  EXPECT_TRUE(StatusOf(spec).ok());
  sequence.add_lookback(1);
  ExpectInvalid(spec, std::to_string(wanted + 1));
}

TEST_F(StepRequestTest, MasksHaveOneEntryAToken) {
  ExpectInvalid(MakeSpec(block_, {1, 2}, {true}), "mask has 1 entries");
  StepSpec spec = MakeSpec(block_, {1, 2});
  spec.sequences.Mutable(0)->add_lookback_mask(true);
  ExpectInvalid(spec, "mask has 1 entries");
}

}  // namespace
}  // namespace engram
