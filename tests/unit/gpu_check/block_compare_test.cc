#include "tests/gpu/check/block_compare.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/thread_pool.h"
#include "core/model/token_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::gpu_check {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

const char kData[] = ENGRAM_SOURCE_DIR "/tests/golden/data/";

// Another block with one thing wrong.
class SpoiledBlock final : public EngramBlock {
 public:
  using Spoil = std::function<void(size_t tokens, const BlockOutputs&)>;
  SpoiledBlock(const EngramBlock& block, Spoil spoil)
      : block_(block), spoil_(std::move(spoil)) {}

  const EngramConfig& config() const override { return block_.config(); }
  const EngramLayout& layout() const override { return block_.layout(); }
  const RowFormat& row_format() const override { return block_.row_format(); }
  const NgramHasher& hasher() const override { return block_.hasher(); }
  ProjectionMode projection_mode() const override {
    return block_.projection_mode();
  }
  size_t tile_tokens() const override { return block_.tile_tokens(); }
  absl::StatusOr<RowsBuffer> AllocateRows(size_t size_bytes) const override {
    return block_.AllocateRows(size_bytes);
  }
  BlockUse use() const override { return block_.use(); }
  absl::Status health() const override { return block_.health(); }
  absl::Status Forward(size_t layer_index, StreamDtype dtype,
                       absl::Span<const std::byte> packed_rows,
                       absl::Span<const std::byte> streams,
                       absl::Span<const uint8_t> mask,
                       const BlockOutputs& outputs) const override {
    const absl::Status status =
        block_.Forward(layer_index, dtype, packed_rows, streams, mask, outputs);
    if (status.ok()) {
      spoil_(streams.size() /
                 (config().hc_mult * config().dim * StreamBytes(dtype)),
             outputs);
    }
    return status;
  }

 private:
  const EngramBlock& block_;
  const Spoil spoil_;
};

class BlockCompareTest : public testing::Test {
 protected:
  BlockCompareTest()
      : pool_({.thread_count = 2}),
        golden_(*test::GoldenStep::Open(
            absl::StrCat(kData, "odd.golden.safetensors"),
            absl::StrCat(kData, "odd"))),
        block_(*EngramBlock::Create(golden_->checkpoint(), golden_->token_map(),
                                    &pool_)) {}

  // The comparisons of values with a block that is spoiled so.
  absl::Status Values(const SpoiledBlock::Spoil& spoil) {
    const SpoiledBlock spoiled(*block_, spoil);
    BlockCounts counts;
    return CompareRandomSteps({spoiled, *block_, golden_->checkpoint()}, {1, 5},
                              1, counts);
  }
  absl::Status Golden(const SpoiledBlock::Spoil& spoil) {
    const SpoiledBlock spoiled(*block_, spoil);
    BlockCounts counts;
    return CompareGolden(*golden_, spoiled, true, counts);
  }

  ThreadPool pool_;
  const std::unique_ptr<const test::GoldenStep> golden_;
  const std::unique_ptr<const EngramBlock> block_;
};

TEST_F(BlockCompareTest, ABlockIsEqualToItself) {
  const BlockPair pair = {*block_, *block_, golden_->checkpoint()};
  BlockCounts counts;
  EXPECT_THAT(CompareRandomSteps(pair, {1, 2, 9}, 1, counts), IsOk());
  EXPECT_THAT(CompareCallForms(pair, 5, 2), IsOk());
  EXPECT_THAT(ComparePieces(pair, 11, {1, 2, 5}, 3), IsOk());
  EXPECT_THAT(CompareConcurrent(pair, 4, 3, 2, 4), IsOk());
  EXPECT_THAT(CompareRefusals(pair, 5), IsOk());
  EXPECT_THAT(CompareGolden(*golden_, *block_, true, counts), IsOk());
  EXPECT_EQ(counts.gates_differ, 0U);
  EXPECT_GT(counts.gates, 100U);
}

TEST_F(BlockCompareTest, FindsAWrongStream) {
  const auto spoil = [](size_t, const BlockOutputs& outputs) {
    if (!outputs.streams.empty()) outputs.streams.back() ^= std::byte{0x20};
  };
  EXPECT_THAT(Values(spoil), Not(IsOk()));
  EXPECT_THAT(Golden(spoil), Not(IsOk()));
}

TEST_F(BlockCompareTest, FindsAWrongGate) {
  const auto spoil = [](size_t, const BlockOutputs& outputs) {
    if (!outputs.gate.empty()) outputs.gate.front() += 1e-5F;
  };
  EXPECT_THAT(Values(spoil), IsError(absl::StatusCode::kDataLoss,
                                     HasSubstr("gate of token 0")));
  EXPECT_THAT(Golden(spoil), Not(IsOk()));
}

TEST_F(BlockCompareTest, FindsAWrongKv) {
  const auto spoil = [](size_t, const BlockOutputs& outputs) {
    if (!outputs.kv.empty()) outputs.kv[3] += 16;
  };
  EXPECT_THAT(Values(spoil),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("kv of token 0")));
  EXPECT_THAT(Golden(spoil), Not(IsOk()));
}

TEST_F(BlockCompareTest, FindsWhatIsNotWritten) {
  const auto spoil = [poison = 0](size_t, const BlockOutputs& outputs) mutable {
    if (!outputs.value.empty()) outputs.value[0] = ++poison;
  };
  EXPECT_THAT(Values(spoil),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("poison")));
}

TEST_F(BlockCompareTest, FindsWhatDependsOnTheBatch) {
  const SpoiledBlock spoiled(*block_,
                             [](size_t tokens, const BlockOutputs& outputs) {
                               if (tokens > 1 && !outputs.value.empty())
                                 outputs.value.back() ^= 1;
                             });
  EXPECT_THAT(
      ComparePieces({spoiled, *block_, golden_->checkpoint()}, 6, {1}, 1),
      IsError(absl::StatusCode::kDataLoss, HasSubstr("in pieces of 1")));
}

TEST_F(BlockCompareTest, FindsAnOutputSetThatIsAnother) {
  const SpoiledBlock spoiled(*block_, [](size_t, const BlockOutputs& outputs) {
    if (outputs.gate.empty() && !outputs.value.empty()) outputs.value[0] ^= 1;
  });
  EXPECT_THAT(CompareCallForms({spoiled, *block_, golden_->checkpoint()}, 4, 1),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("output set")));
}

}  // namespace
}  // namespace engram::gpu_check
