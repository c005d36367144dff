#ifndef ENGRAM_COMPUTE_DEQUANT_DECODE_ARGS_H_
#define ENGRAM_COMPUTE_DEQUANT_DECODE_ARGS_H_

#include <cstddef>
#include <cstdint>

namespace engram {

// How decoded values lie in memory.
enum class DecodedLayout {
  kRowMajor,   // [tokens, in]
  kFragments,  // compute/project/fragment_layout.h, absent tokens as zeros
};

// One launch of the decoding; all pointers are the device's. A token has
// `columns` packed rows of `width` codes and width / block_size scales, which
// are its in = columns * width values.
struct DecodeArgs {
  uint32_t token_count = 0;
  uint32_t columns = 0;
  uint32_t width = 0;
  uint32_t block_size = 32;
  const std::byte* rows = nullptr;  // [tokens, columns, row bytes]
  DecodedLayout layout = DecodedLayout::kRowMajor;
  uint16_t* out = nullptr;  // bf16
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DECODE_ARGS_H_
