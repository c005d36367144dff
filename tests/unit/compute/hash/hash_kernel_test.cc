#include "compute/hash/hash_kernel.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "compute/hash/ngram_hash.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/compute/hash/emulated_hash.h"

namespace engram {
namespace {

using ::testing::Each;

EngramConfig SmallConfig(uint32_t max_ngram_size, uint32_t heads) {
  EngramConfig config;
  config.vocab_size = 50;
  config.dim = 32;
  config.hc_mult = 2;
  config.norm_eps = 1e-6;
  config.layer_ids = {1, 4, 5};
  config.engram_vocab_size = 97;
  config.max_ngram_size = max_ngram_size;
  config.pad_id = 3;
  config.compressed_vocab_size = 40;
  config.n_heads = heads;
  config.head_dim = 32;
  return config;
}

// One model on the CPU and on the emulator.
class Model {
 public:
  explicit Model(const EngramConfig& config)
      : config_(config),
        layout_(*EngramLayout::Create(config)),
        map_(*TokenMap::Create(MadeUpTokenMap(config), config)),
        hasher_(*NgramHasher::Create(config, layout_, map_)),
        emulated_(config, layout_, map_) {}

  const EngramConfig& config() const { return config_; }
  const test::EmulatedHash& emulated() const { return emulated_; }

  std::vector<uint32_t> Wanted(absl::Span<const TokenChunk> chunks) const {
    std::vector<uint32_t> rows;
    for (size_t layer = 0; layer < hasher_.layer_count(); ++layer) {
      for (const TokenChunk& chunk : chunks) {
        EXPECT_THAT(hasher_.Check(chunk), test::IsOk());
        std::vector<RowId> out(chunk.tokens.size() * hasher_.columns());
        hasher_.Hash(layer, chunk, absl::MakeSpan(out));
        rows.insert(rows.end(), out.begin(), out.end());
      }
    }
    return rows;
  }

 private:
  const EngramConfig config_;
  const EngramLayout layout_;
  const TokenMap map_;
  const NgramHasher hasher_;
  const test::EmulatedHash emulated_;
};

// Sequences of random tokens, some of them dead.
class Sequences {
 public:
  Sequences(const EngramConfig& config, uint32_t seed) : config_(config) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      tokens_.push_back(random() % config.vocab_size);
      mask_.push_back(random() % 6 == 0 ? 0 : 1);
      // Whatever stands where a token is dead is ignored.
      if (mask_.back() == 0) tokens_.back() = 0xFFFFFF00 + i;
    }
  }

  // Tokens [start, start + length) of a sequence that begins at `first`.
  TokenChunk Chunk(size_t first, size_t start, size_t length) const {
    const size_t back = std::min<size_t>(start, config_.max_lookback());
    TokenChunk chunk;
    chunk.start_position = start;
    chunk.tokens = absl::MakeConstSpan(tokens_).subspan(first + start, length);
    chunk.mask = absl::MakeConstSpan(mask_).subspan(first + start, length);
    chunk.lookback =
        absl::MakeConstSpan(tokens_).subspan(first + start - back, back);
    chunk.lookback_mask =
        absl::MakeConstSpan(mask_).subspan(first + start - back, back);
    return chunk;
  }

 private:
  const EngramConfig config_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> mask_;
};

TEST(HashKernelTest, HashesAsTheCpuForManyShapes) {
  for (const uint32_t max_ngram_size : {2U, 3U, 4U, 9U, 32U}) {
    for (const uint32_t heads : {1U, 3U, 8U, 31U}) {
      const Model model(SmallConfig(max_ngram_size, heads));
      const Sequences sequences(model.config(), max_ngram_size);
      const std::vector<TokenChunk> chunks = {
          sequences.Chunk(0, 0, 40), sequences.Chunk(100, 1, 1),
          sequences.Chunk(200, 2, 7), sequences.Chunk(300, 40, 9)};
      const auto got = model.emulated().Hash(chunks);
      EXPECT_EQ(got.row_ids, model.Wanted(chunks))
          << max_ngram_size << " " << heads;
      EXPECT_EQ(got.first_bad, 0xFFFFFFFF);
    }
  }
}

TEST(HashKernelTest, HashesAnyNumberOfTokens) {
  const auto config = PresetConfig("v41-mini");
  ASSERT_THAT(config, test::IsOk());
  const Model model(*config);
  const Sequences sequences(model.config(), 1);
  for (const size_t length : {1, 7, 8, 9, 64, 1000}) {
    const TokenChunk chunk = sequences.Chunk(17, 5, length);
    EXPECT_EQ(model.emulated().Hash({chunk}).row_ids, model.Wanted({chunk}))
        << length;
  }
}

TEST(HashKernelTest, HashesOnlyThePositionsAskedFor) {
  const Model model(SmallConfig(4, 8));
  const std::vector<uint32_t> ids = {kBlockedToken, 5, 6, 7, 8, 9};
  const auto got = model.emulated().Hash(ids, {5, 3, 5});
  const size_t columns = model.config().columns();
  for (size_t layer = 0; layer < 3; ++layer) {
    const auto* const rows = &got.row_ids[layer * 3 * columns];
    EXPECT_TRUE(std::equal(rows, rows + columns, rows + 2 * columns));
    EXPECT_FALSE(std::equal(rows, rows + columns, rows + columns));
  }
  EXPECT_EQ(got.first_bad, 0xFFFFFFFF);
}

TEST(HashKernelTest, ReportsTheFirstTokenWithABadId) {
  const Model model(SmallConfig(4, 8));
  std::vector<uint32_t> ids(30, 7);
  std::vector<uint32_t> positions;
  for (uint32_t i = 3; i < 30; ++i) positions.push_back(i);
  const auto sound = model.emulated().Hash(ids, positions);
  EXPECT_EQ(sound.first_bad, 0xFFFFFFFF);
  ids[28] = 0xFFFFFFFE;
  EXPECT_EQ(model.emulated().Hash(ids, positions).first_bad, 25U);
  ids[12] = model.config().vocab_size;
  const auto bad = model.emulated().Hash(ids, positions);
  EXPECT_EQ(bad.first_bad, 9U);
  ids[12] = kBlockedToken;
  ids[28] = kBlockedToken;
  EXPECT_EQ(model.emulated().Hash(ids, positions).row_ids, bad.row_ids);
}

TEST(HashKernelTest, ReportsPositionsThatAreNone) {
  const Model model(SmallConfig(4, 8));
  const std::vector<uint32_t> ids(10, 7);
  EXPECT_EQ(model.emulated().Hash(ids, {3, 9}).first_bad, 0xFFFFFFFF);
  EXPECT_EQ(model.emulated().Hash(ids, {3, 9, 2}).first_bad, 2U);
  EXPECT_EQ(model.emulated().Hash(ids, {3, 10}).first_bad, 1U);
  EXPECT_EQ(model.emulated().Hash(ids, {0xFFFFFFFF}).first_bad, 0U);
  EXPECT_THAT(model.emulated().Hash(ids, {0xFFFFFFFF}).row_ids,
              Each(::testing::Ne(0xDEADBEEF)));
}

TEST(HashShapeTest, AWarpForEachToken) {
  constexpr uint32_t kWarps = kHashThreads / 32;
  for (const uint32_t tokens : {1U, 7U, 8U, 9U, 64U, 4096U, 0xFFFFFFFFU}) {
    const LaunchShape shape = HashShape(tokens);
    EXPECT_EQ(shape.block_x, kHashThreads);
    EXPECT_GE(uint64_t{shape.grid_x} * kWarps, tokens);
    EXPECT_LT(uint64_t{shape.grid_x - 1} * kWarps, tokens);
    EXPECT_LT(shape.grid_x, uint32_t{1} << 31);
  }
  EXPECT_DEATH(HashShape(0), "token_count");
}

}  // namespace
}  // namespace engram
