#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/hash/ngram_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

EngramConfig TestConfig() {
  EngramConfig config;
  config.vocab_size = 50;
  config.dim = 32;
  config.hc_mult = 2;
  config.norm_eps = 1e-6;
  config.layer_ids = {1, 4};
  config.engram_vocab_size = 97;
  config.max_ngram_size = 4;
  config.pad_id = 3;
  config.compressed_vocab_size = 40;
  config.n_heads = 3;
  config.head_dim = 32;
  return config;
}

std::vector<int32_t> TestMap(const EngramConfig& config) {
  std::vector<int32_t> map;
  for (uint32_t i = 0; i < config.vocab_size; ++i) {
    map.push_back(
        static_cast<int32_t>((i * 7 + 1) % config.compressed_vocab_size));
  }
  return map;
}

// One sequence, and its hash written down as the reference has it: every
// position looks back by itself.
struct Sequence {
  std::vector<uint32_t> tokens;
  std::vector<uint8_t> mask;

  bool Blocked(int64_t position) const {
    return position < 0 || mask[position] == 0;
  }
};

class NgramHasherTest : public testing::Test {
 protected:
  NgramHasherTest()
      : config_(TestConfig()),
        layout_(*EngramLayout::Create(config_)),
        map_(*TokenMap::Create(TestMap(config_), config_)),
        hasher_(*NgramHasher::Create(config_, layout_, map_)) {}

  Sequence RandomSequence(size_t length, uint32_t seed) const {
    std::mt19937 random(seed);
    Sequence sequence;
    for (size_t i = 0; i < length; ++i) {
      sequence.tokens.push_back(random() % config_.vocab_size);
      sequence.mask.push_back(random() % 6 == 0 ? 0 : 1);
    }
    return sequence;
  }

  std::vector<RowId> Wanted(size_t layer, const Sequence& sequence) const {
    const LayerLayout& l = layout_.layers()[layer];
    std::vector<RowId> rows;
    for (int64_t p = 0; p < static_cast<int64_t>(sequence.tokens.size()); ++p) {
      unsigned __int128 hash = 0;
      bool blocked = false;
      for (int64_t i = 0; i < config_.max_ngram_size; ++i) {
        blocked = blocked || sequence.Blocked(p - i);
        const uint64_t id =
            blocked ? map_.pad() : map_.ids()[sequence.tokens[p - i]];
        hash ^= static_cast<unsigned __int128>(id) * l.multipliers[i];
        EXPECT_LT(hash >> 63, 1U);
        for (size_t head = 0; i > 0 && head < config_.n_heads; ++head) {
          const size_t column = (i - 1) * config_.n_heads + head;
          rows.push_back(
              static_cast<RowId>(hash % l.primes[column] + l.offsets[column]));
        }
      }
    }
    return rows;
  }

  // Hashes `sequence` in chunks of these lengths, each with its lookback.
  std::vector<RowId> HashInChunks(size_t layer, const Sequence& sequence,
                                  const std::vector<size_t>& chunks) const {
    std::vector<RowId> rows;
    size_t start = 0;
    for (size_t length : chunks) {
      TokenChunk chunk = Chunk(sequence, start, length);
      EXPECT_EQ(hasher_.Check(chunk), absl::OkStatus());
      std::vector<RowId> out(length * hasher_.columns(), 0xDEADBEEF);
      hasher_.Hash(layer, chunk, absl::MakeSpan(out));
      rows.insert(rows.end(), out.begin(), out.end());
      start += length;
    }
    return rows;
  }

  TokenChunk Chunk(const Sequence& sequence, size_t start,
                   size_t length) const {
    const size_t back = std::min<size_t>(start, config_.max_lookback());
    TokenChunk chunk;
    chunk.start_position = start;
    chunk.tokens = absl::MakeConstSpan(sequence.tokens).subspan(start, length);
    chunk.mask = absl::MakeConstSpan(sequence.mask).subspan(start, length);
    chunk.lookback =
        absl::MakeConstSpan(sequence.tokens).subspan(start - back, back);
    chunk.lookback_mask =
        absl::MakeConstSpan(sequence.mask).subspan(start - back, back);
    return chunk;
  }

  const EngramConfig config_;
  const EngramLayout layout_;
  const TokenMap map_;
  const NgramHasher hasher_;
};

TEST_F(NgramHasherTest, HashesAsTheReference) {
  const Sequence sequence = RandomSequence(200, 1);
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(HashInChunks(layer, sequence, {200}), Wanted(layer, sequence));
  }
}

TEST_F(NgramHasherTest, AnySplitIntoChunksGivesTheSameRows) {
  const Sequence sequence = RandomSequence(40, 2);
  const std::vector<RowId> wanted = Wanted(1, sequence);
  EXPECT_EQ(HashInChunks(1, sequence, {1, 1, 1, 1, 1, 35}), wanted);
  EXPECT_EQ(HashInChunks(1, sequence, {2, 3, 5, 30}), wanted);
  EXPECT_EQ(HashInChunks(1, sequence, {39, 1}), wanted);
  EXPECT_EQ(HashInChunks(1, sequence, std::vector<size_t>(40, 1)), wanted);
}

TEST_F(NgramHasherTest, SameRowsOnEveryInstructionSet) {
  const Sequence sequence = RandomSequence(300, 8);
  for (const uint32_t heads : {1U, 3U, 8U, 11U}) {
    EngramConfig config = config_;
    config.n_heads = heads;
    const auto layout = EngramLayout::Create(config);
    ASSERT_TRUE(layout.ok()) << layout.status();
    const auto hasher = NgramHasher::Create(config, *layout, map_);
    ASSERT_TRUE(hasher.ok()) << hasher.status();
    const TokenChunk chunk = Chunk(sequence, 0, 300);
    std::vector<RowId> wanted(300 * hasher->columns());
    hasher->Hash(1, chunk, absl::MakeSpan(wanted));
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      std::vector<RowId> rows(wanted.size(), 0xDEADBEEF);
      hasher->Hash(1, chunk, absl::MakeSpan(rows));
      EXPECT_EQ(rows, wanted) << hwy::TargetName(target) << " " << heads;
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST_F(NgramHasherTest, NoMaskMeansAllLive) {
  Sequence sequence = RandomSequence(20, 3);
  std::fill(sequence.mask.begin(), sequence.mask.end(), 1);
  TokenChunk chunk = Chunk(sequence, 5, 15);
  chunk.mask = {};
  chunk.lookback_mask = {};
  std::vector<RowId> rows(15 * hasher_.columns());
  hasher_.Hash(0, chunk, absl::MakeSpan(rows));
  const std::vector<RowId> wanted = Wanted(0, sequence);
  EXPECT_EQ(rows, std::vector<RowId>(wanted.begin() + 5 * hasher_.columns(),
                                     wanted.end()));
}

TEST_F(NgramHasherTest, IdsAtDeadPositionsAreIgnored) {
  Sequence sequence = RandomSequence(30, 4);
  const std::vector<RowId> wanted = HashInChunks(0, sequence, {10, 20});
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    if (sequence.mask[i] == 0) sequence.tokens[i] = 0xFFFFFFFF;
  }
  EXPECT_EQ(HashInChunks(0, sequence, {10, 20}), wanted);
}

TEST_F(NgramHasherTest, RefusesLiveTokensOutsideTheVocabulary) {
  Sequence sequence = RandomSequence(10, 5);
  std::fill(sequence.mask.begin(), sequence.mask.end(), 1);
  sequence.tokens[7] = 50;
  const absl::Status in_tokens = hasher_.Check(Chunk(sequence, 5, 5));
  EXPECT_EQ(in_tokens.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(in_tokens.message(), HasSubstr("token 2 is 50"));
  EXPECT_THAT(in_tokens.message(), HasSubstr("vocabulary of 50"));
  const absl::Status in_lookback = hasher_.Check(Chunk(sequence, 9, 1));
  EXPECT_EQ(in_lookback.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(in_lookback.message(), HasSubstr("lookback token 1 is 50"));
}

TEST_F(NgramHasherTest, RefusesALookbackOfAnotherLength) {
  const Sequence sequence = RandomSequence(10, 6);
  TokenChunk chunk = Chunk(sequence, 5, 5);
  chunk.lookback.remove_prefix(1);
  chunk.lookback_mask.remove_prefix(1);
  const absl::Status too_short = hasher_.Check(chunk);
  EXPECT_EQ(too_short.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(too_short.message(),
              HasSubstr("lookback of 2 tokens, must be 3"));
  chunk = Chunk(sequence, 5, 5);
  chunk.start_position = 1;
  const absl::Status too_long = hasher_.Check(chunk);
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(too_long.message(), HasSubstr("lookback of 3 tokens, must be 1"));
}

TEST_F(NgramHasherTest, RefusesMasksOfAnotherLength) {
  const Sequence sequence = RandomSequence(10, 7);
  TokenChunk chunk = Chunk(sequence, 5, 5);
  chunk.mask.remove_suffix(1);
  EXPECT_THAT(hasher_.Check(chunk).message(),
              HasSubstr("mask has 4 entries for 5 tokens"));
  chunk = Chunk(sequence, 5, 5);
  chunk.lookback_mask.remove_suffix(1);
  EXPECT_THAT(hasher_.Check(chunk).message(),
              HasSubstr("lookback mask has 2 entries for 3 tokens"));
}

TEST_F(NgramHasherTest, RefusesAMapOfAnotherVocabulary) {
  EngramConfig other = config_;
  other.vocab_size = 51;
  EXPECT_EQ(NgramHasher::Create(other, layout_, map_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace engram
