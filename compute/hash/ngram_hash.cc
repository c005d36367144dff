#include "compute/hash/ngram_hash.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compute/hash/column_kernel.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {

struct NgramHasher::Layer {
  ColumnConstants constants;
};

namespace {

// Positions that are hashed at a time.
constexpr size_t kRunPositions = 64;

bool IsLive(absl::Span<const uint8_t> mask, size_t i) {
  return mask.empty() || mask[i] != 0;
}

// Compressed ids as the hash looks back at them: those before the next
// position, oldest first, with room for the positions of one run after them.
// Once a lookback is blocked all older ones are, so after a dead token (as at
// the start of a sequence) everything before looks like pads.
class History {
 public:
  History(size_t lookback, uint32_t pad)
      : lookback_(lookback), pad_(pad), ids_(lookback + kRunPositions) {
    Block();
  }

  void Block() { std::fill_n(ids_.begin(), lookback_, pad_); }
  // The ids of the next run are to be written here.
  uint32_t* run() { return ids_.data() + lookback_; }
  // Makes the run's ids, written before, part of the history.
  void Pass(size_t count) {
    std::copy_n(ids_.begin() + count, lookback_, ids_.begin());
  }

 private:
  const size_t lookback_;
  const uint32_t pad_;
  absl::InlinedVector<uint32_t, kRunPositions + 8> ids_;
};

absl::Status CheckMask(absl::string_view what, absl::Span<const uint8_t> mask,
                       size_t count) {
  if (mask.empty() || mask.size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has ", mask.size(), " entries for ", count, " tokens"));
}

absl::Status CheckTokens(absl::string_view what,
                         absl::Span<const uint32_t> tokens,
                         absl::Span<const uint8_t> mask, uint32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= vocab_size && IsLive(mask, i)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ", i, " is ", tokens[i],
                       ", not below the vocabulary of ", vocab_size));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTokenMap(const TokenMap& token_map,
                           const EngramConfig& config) {
  if (token_map.ids().size() == config.vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("token map of ", token_map.ids().size(),
                   " entries for a vocabulary of ", config.vocab_size));
}

absl::StatusOr<NgramHasher> NgramHasher::Create(const EngramConfig& config,
                                                const EngramLayout& layout,
                                                const TokenMap& token_map) {
  ENGRAM_RETURN_IF_ERROR(CheckTokenMap(token_map, config));
  NgramHasher hasher;
  hasher.vocab_size_ = config.vocab_size;
  hasher.max_ngram_size_ = config.max_ngram_size;
  hasher.n_heads_ = config.n_heads;
  hasher.columns_ = config.columns();
  hasher.pad_ = token_map.pad();
  hasher.token_map_ = std::make_shared<const std::vector<int32_t>>(
      token_map.ids().begin(), token_map.ids().end());
  for (const LayerLayout& from : layout.layers()) {
    ENGRAM_CHECK(from.primes.size() == hasher.columns_);
    ENGRAM_CHECK(from.offsets.size() == hasher.columns_);
    ENGRAM_CHECK(from.multipliers.size() == hasher.max_ngram_size_);
    hasher.layers_.push_back(std::make_shared<const Layer>(
        Layer{ColumnConstants(from, hasher.n_heads_)}));
  }
  return hasher;
}

absl::Status NgramHasher::Check(const TokenChunk& chunk) const {
  const uint64_t wanted =
      std::min<uint64_t>(chunk.start_position, max_ngram_size_ - 1);
  if (chunk.lookback.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("lookback of ", chunk.lookback.size(), " tokens, must be ",
                     wanted, " at start position ", chunk.start_position,
                     " with n-grams of up to ", max_ngram_size_));
  }
  ENGRAM_RETURN_IF_ERROR(CheckMask("mask", chunk.mask, chunk.tokens.size()));
  ENGRAM_RETURN_IF_ERROR(
      CheckMask("lookback mask", chunk.lookback_mask, chunk.lookback.size()));
  ENGRAM_RETURN_IF_ERROR(
      CheckTokens("token", chunk.tokens, chunk.mask, vocab_size_));
  return CheckTokens("lookback token", chunk.lookback, chunk.lookback_mask,
                     vocab_size_);
}

void NgramHasher::Hash(size_t layer_index, const TokenChunk& chunk,
                       absl::Span<RowId> out) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  ENGRAM_CHECK(out.size() == chunk.tokens.size() * columns_);
  const ColumnConstants& constants = layers_[layer_index]->constants;
  const int32_t* const map = token_map_->data();
  const uint32_t pad = pad_;
  History history(max_ngram_size_ - 1, pad);
  for (size_t i = 0; i < chunk.lookback.size(); ++i) {
    if (IsLive(chunk.lookback_mask, i)) {
      *history.run() = map[chunk.lookback[i]];
      history.Pass(1);
    } else {
      history.Block();
    }
  }
  for (size_t i = 0; i < chunk.tokens.size();) {
    size_t count = 0;
    while (i + count < chunk.tokens.size() && count < kRunPositions &&
           IsLive(chunk.mask, i + count)) {
      history.run()[count] = map[chunk.tokens[i + count]];
      ++count;
    }
    if (count == 0) {  // a dead token: pads to itself and to all after it
      history.Block();
      *history.run() = pad;
      count = 1;
    }
    HashPositions(constants, history.run(), count, &out[i * columns_]);
    history.Pass(count);
    i += count;
  }
}

}  // namespace engram
