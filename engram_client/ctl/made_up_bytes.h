#ifndef ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_BYTES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace engram::ctl {

// Made-up bytes start anew at every multiple of this, so that threads fill
// any part of a tensor without the parts before it.
inline constexpr uint64_t kMadeUpBlockBytes = 64 << 10;

// Bytes [offset, offset + out.size()) of the endless pseudo-random sequence
// (seed, stream): the same whatever pieces it is asked in. Some GB/s a core.
// REQUIRES: offset is a multiple of kMadeUpBlockBytes.
void FillRandom(uint64_t seed, uint64_t stream, uint64_t offset,
                absl::Span<uint8_t> out);

// Turns random bytes into e4m3 codes: the two NaN codes become 0x77 and 0xF7.
void ReplaceNanCodes(absl::Span<uint8_t> codes);

// Turns random bytes into numbers of [first, first + count). REQUIRES:
// first + count <= 256.
void SpreadOver(uint8_t first, uint32_t count, absl::Span<uint8_t> bytes);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_BYTES_H_
