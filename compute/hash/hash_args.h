#ifndef ENGRAM_COMPUTE_HASH_HASH_ARGS_H_
#define ENGRAM_COMPUTE_HASH_HASH_ARGS_H_

#include <cstdint>

namespace engram {

// A slot that lookbacks do not pass: a dead token, or before the start of the
// sequence.
inline constexpr uint32_t kBlockedToken = 0xFFFFFFFF;

// What hash_core.h needs for one column of one layer.
struct HashColumn {
  uint64_t magic = 0;
  uint32_t shift = 0;
  uint32_t prime = 0;
  uint32_t offset = 0;
  uint32_t ngram_size = 0;  // tokens that it hashes
};

// Of one model. All pointers are the device's, here and below.
struct HashModel {
  const uint32_t* token_map = nullptr;    // [vocab_size], compressed ids
  const uint64_t* multipliers = nullptr;  // [layers, max_ngram_size]
  const HashColumn* columns = nullptr;    // [layers, columns]
  uint32_t vocab_size = 0;
  uint32_t pad = 0;  // compressed
  uint32_t layer_count = 0;
  uint32_t max_ngram_size = 0;  // <= 32
  uint32_t column_count = 0;
};

// Tokens of any number of sequences; flat_tokens.h lays them out.
struct HashBatch {
  // [slot_count], token ids or kBlockedToken. Before a token stand the
  // max_ngram_size - 1 tokens that it looks back at.
  const uint32_t* ids = nullptr;
  // [token_count], the slot of each token to hash.
  const uint32_t* positions = nullptr;
  uint32_t slot_count = 0;
  uint32_t token_count = 0;
  uint32_t* row_ids = nullptr;  // [layers, token_count, columns]
  // One word, 0xFFFFFFFF before: gets the lowest index of a token with a
  // position that is none, or with an id in its n-grams that is not below
  // vocab_size. Such ids are hashed as blocked ones are.
  uint32_t* first_bad = nullptr;
};

struct HashArgs {
  HashModel model;
  HashBatch batch;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_HASH_ARGS_H_
