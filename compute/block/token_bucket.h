#ifndef ENGRAM_COMPUTE_BLOCK_TOKEN_BUCKET_H_
#define ENGRAM_COMPUTE_BLOCK_TOKEN_BUCKET_H_

#include <cstddef>
#include <optional>

namespace engram {

// A CUDA graph has one number of tokens. A tile is computed by that of the
// next larger bucket of 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, the
// tokens too many over what the buffers hold: every token's values depend on
// nothing but its own. A handful of graphs so serves all small tiles, where
// launches would be felt; in larger ones padding would cost more than they do.
inline constexpr size_t kMaxGraphTokens = 256;

// The bucket of a tile of 1 .. tile_tokens tokens, itself at most
// `tile_tokens`, which the buffers hold; none: launch without a graph.
std::optional<size_t> TokenBucket(size_t tokens, size_t tile_tokens);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_TOKEN_BUCKET_H_
