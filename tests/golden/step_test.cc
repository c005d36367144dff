// The whole step of one layer against the oracle's golden files, by the
// comparisons of tests/testing/step_compare.h.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/dequant/dequant.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_step.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/step_compare.h"

namespace engram {
namespace {

using test::GoldenLayer;
using test::GoldenStep;
using test::IsOk;

// A checkpoint, its golden file and a block over them. The parameter is the
// name of both.
class GoldenStepTest : public testing::TestWithParam<std::string> {
 protected:
  GoldenStepTest() : pool_({.thread_count = 2}) {}

  void SetUp() override {
    auto step = GoldenStep::Open(
        absl::StrCat(ENGRAM_SOURCE_DIR "/tests/golden/data/", GetParam(),
                     ".golden.safetensors"),
        absl::StrCat(ENGRAM_GOLDEN_CHECKPOINTS "/", GetParam()));
    ASSERT_THAT(step, IsOk());
    step_ = *std::move(step);
    block_ = NewBlock(&pool_);
    ASSERT_NE(block_, nullptr);
  }

  std::unique_ptr<const EngramBlock> NewBlock(ThreadPool* pool) const {
    auto block =
        EngramBlock::Create(step_->checkpoint(), step_->token_map(), pool);
    EXPECT_THAT(block, IsOk());
    return block.ok() ? *std::move(block) : nullptr;
  }

  std::vector<std::byte> FetchAll(const GoldenLayer& layer) const {
    const auto packed = step_->Fetch(layer, layer.row_ids);
    EXPECT_THAT(packed, IsOk());
    return packed.value_or(std::vector<std::byte>());
  }

  size_t row_values() const {
    return step_->golden().positions() * step_->config().wkv_in();
  }

  ThreadPool pool_;
  std::unique_ptr<const GoldenStep> step_;
  std::unique_ptr<const EngramBlock> block_;
};

TEST_P(GoldenStepTest, RowIdsForAnySplitIntoChunks) {
  for (const GoldenLayer& layer : step_->layers()) {
    for (const std::vector<size_t>& chunks : step_->golden().Splits()) {
      const auto ids =
          step_->golden().Hash(block_->hasher(), layer.index, chunks,
                               step_->config().max_lookback());
      ASSERT_THAT(ids, IsOk());
      EXPECT_EQ(*ids, layer.row_ids);
    }
  }
}

TEST_P(GoldenStepTest, RowsAreExact) {
  for (const GoldenLayer& layer : step_->layers()) {
    std::vector<uint16_t> rows(row_values());
    DecodeRowsBf16(block_->row_format(), FetchAll(layer), absl::MakeSpan(rows));
    EXPECT_EQ(rows, step_->golden().Layer<uint16_t>(layer.id, "rows"));
  }
}

TEST_P(GoldenStepTest, RequantisedRowsAreExact) {
  for (const GoldenLayer& layer : step_->layers()) {
    std::vector<float> rows(row_values());
    DecodeRowsForProjection(block_->row_format(), FetchAll(layer),
                            absl::MakeSpan(rows));
    EXPECT_EQ(rows, step_->golden().Layer<float>(layer.id, "rows_requantised"));
  }
}

TEST_P(GoldenStepTest, KvIsCloseAndNearlyAlwaysEqual) {
  for (const GoldenLayer& layer : step_->layers()) {
    const auto share = step_->CheckKv(*block_, layer);
    ASSERT_THAT(share, IsOk());
    RecordProperty(absl::StrCat("equal_kv_layer_", ToInt(layer.id)),
                   absl::StrCat(*share));
  }
}

TEST_P(GoldenStepTest, GateAndStreamsFollowFromOurOwnKv) {
  for (const GoldenLayer& layer : step_->layers()) {
    EXPECT_THAT(step_->CheckOwnKv(*block_, layer), IsOk());
  }
}

TEST_P(GoldenStepTest, GateAndStreamsAreCloseToTheGolden) {
  for (const GoldenLayer& layer : step_->layers()) {
    EXPECT_THAT(step_->CheckWanted(*block_, layer), IsOk());
  }
}

TEST_P(GoldenStepTest, DeadPositionsAreUntouched) {
  for (const GoldenLayer& layer : step_->layers()) {
    EXPECT_THAT(step_->CheckDead(*block_, layer), IsOk());
  }
}

// A caller that asks for gate and value and adds them itself.
TEST_P(GoldenStepTest, ContributionGivesTheSameStreams) {
  for (const GoldenLayer& layer : step_->layers()) {
    EXPECT_THAT(step_->CheckContribution(*block_, layer), IsOk());
  }
}

// The promise to decode and chunked prefill: no batch changes a bit.
TEST_P(GoldenStepTest, SameBitsForAnyBatch) {
  for (const GoldenLayer& layer : step_->layers()) {
    EXPECT_THAT(step_->CheckAnyBatch(*block_, layer), IsOk());
  }
}

TEST_P(GoldenStepTest, SameBitsForAnyNumberOfThreads) {
  const size_t positions = step_->golden().positions();
  for (const size_t threads : {1, 5}) {
    ThreadPool pool({.thread_count = threads});
    const std::unique_ptr<const EngramBlock> block = NewBlock(&pool);
    ASSERT_NE(block, nullptr);
    for (const GoldenLayer& layer : step_->layers()) {
      const auto result = step_->RunBy(positions, *block, layer);
      const auto wanted = step_->RunBy(positions, *block_, layer);
      ASSERT_THAT(result, IsOk());
      ASSERT_THAT(wanted, IsOk());
      EXPECT_THAT(test::CompareBits(*result, *wanted), IsOk())
          << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenStepTest,
                         testing::ValuesIn(std::vector<std::string>(
                             absl::StrSplit(ENGRAM_GOLDEN_CASES, ','))),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace
}  // namespace engram
