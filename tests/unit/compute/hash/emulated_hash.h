#ifndef ENGRAM_TESTS_UNIT_COMPUTE_HASH_EMULATED_HASH_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_HASH_EMULATED_HASH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compute/hash/flat_tokens.h"
#include "compute/hash/hash_args.h"
#include "compute/hash/hash_constants.h"
#include "compute/hash/hash_kernel.cuh"
#include "compute/hash/hash_shape.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/token_map.h"
#include "tests/gpu/emulator/emulator.h"

namespace engram::test {

// GpuHasher on the emulator.
class EmulatedHash {
 public:
  struct Result {
    std::vector<uint32_t> row_ids;  // [layers, tokens, columns]
    uint32_t first_bad = 0xFFFFFFFF;
  };

  EmulatedHash(const EngramConfig& config, const EngramLayout& layout,
               const TokenMap& token_map)
      : constants_(MakeHashConstants(config, layout)),
        token_map_(token_map.ids().begin(), token_map.ids().end()) {
    model_.token_map = token_map_.data();
    model_.multipliers = constants_.multipliers.data();
    model_.columns = constants_.columns.data();
    model_.vocab_size = config.vocab_size;
    model_.pad = static_cast<uint32_t>(token_map.pad());
    model_.layer_count = static_cast<uint32_t>(layout.layers().size());
    model_.max_ngram_size = config.max_ngram_size;
    model_.column_count = config.columns();
  }
  EmulatedHash(const EmulatedHash&) = delete;
  EmulatedHash& operator=(const EmulatedHash&) = delete;

  Result Hash(absl::Span<const uint32_t> ids,
              absl::Span<const uint32_t> positions) const {
    Result result;
    result.row_ids.assign(
        positions.size() * model_.layer_count * model_.column_count,
        0xDEADBEEF);
    HashArgs args;
    args.model = model_;
    args.batch.ids = ids.data();
    args.batch.positions = positions.data();
    args.batch.slot_count = static_cast<uint32_t>(ids.size());
    args.batch.token_count = static_cast<uint32_t>(positions.size());
    args.batch.row_ids = result.row_ids.data();
    args.batch.first_bad = &result.first_bad;
    emulator::Launch(HashShape(args.batch.token_count), positions.size(),
                     gpu::HashKernel, args);
    return result;
  }

  Result Hash(absl::Span<const TokenChunk> chunks) const {
    const uint32_t lookback = model_.max_ngram_size - 1;
    const FlatSizes sizes = FlatSizesOf(chunks, lookback);
    std::vector<uint32_t> ids(sizes.slots);
    std::vector<uint32_t> positions(sizes.tokens);
    FlattenTokens(chunks, lookback, absl::MakeSpan(ids),
                  absl::MakeSpan(positions));
    return Hash(ids, positions);
  }

 private:
  const HashConstants constants_;
  const std::vector<uint32_t> token_map_;
  HashModel model_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_HASH_EMULATED_HASH_H_
