#ifndef ENGRAM_CORE_MODEL_TOKEN_MAP_H_
#define ENGRAM_CORE_MODEL_TOKEN_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/config.h"

namespace engram {

inline constexpr char kTokenMapFileName[] = "engram_token_map.bin";

// Token id -> compressed id, so that " The", "the" and "THE" hash alike.
// Stored as little-endian int32, one for each of vocab_size ids. Immutable.
class TokenMap {
 public:
  // INVALID_ARGUMENT: not vocab_size entries, an entry that is negative or
  // not below compressed_vocab_size, or a compressed id that nobody maps to
  // (the map then belongs to another compressed size, which would change
  // every multiplier: refused, never guessed).
  static absl::StatusOr<TokenMap> Create(std::vector<int32_t> map,
                                         const EngramConfig& config);
  static absl::StatusOr<TokenMap> Load(const std::string& path,
                                       const EngramConfig& config);

  // Compressed ids of all token ids; size() is vocab_size.
  absl::Span<const int32_t> ids() const { return map_; }
  int32_t pad() const { return pad_; }  // the mapped pad id

 private:
  std::vector<int32_t> map_;
  int32_t pad_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_TOKEN_MAP_H_
