#include "compute/block/token_bucket.h"

#include <algorithm>

#include "core/base/check.h"

namespace engram {

std::optional<size_t> TokenBucket(size_t tokens, size_t tile_tokens) {
  ENGRAM_CHECK(tokens > 0 && tokens <= tile_tokens);
  if (tokens > kMaxGraphTokens) return std::nullopt;
  size_t power = 1;
  while (power < tokens) power *= 2;
  // Half way between two powers, in whole tiles of 8 tokens.
  const size_t half_way = power / 4 * 3;
  const bool fits = half_way >= tokens && half_way % 8 == 0;
  return std::min(fits ? half_way : power, tile_tokens);
}

}  // namespace engram
