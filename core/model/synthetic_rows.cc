#include "core/model/synthetic_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little,
              "words are copied as they stand");

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr uint8_t kFirstScale = 113;
constexpr uint32_t kScaleCount = 7;

// The finaliser of splitmix64: every input bit changes every output bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Flips bit 3 of each byte that is a NaN code: 0x7F to 0x77, 0xFF to 0xF7.
uint64_t WithoutNanCodes(uint64_t codes) {
  constexpr uint64_t kLow = 0x0101010101010101;
  const uint64_t carries = (codes & (kLow * 0x7F)) + kLow;
  return codes ^ ((carries & (kLow * 0x80)) >> 4);
}

// 113 .. 119, from each byte on its own.
uint64_t ToScales(uint64_t bytes) {
  uint64_t scales = 0;
  for (int shift = 0; shift < 64; shift += 8) {
    const uint64_t byte = (bytes >> shift) & 0xFF;
    scales |= (kFirstScale + byte * kScaleCount / 256) << shift;
  }
  return scales;
}

}  // namespace

// The row is the splitmix64 stream that starts at a hash of (seed, layer, row):
// little-endian words, first for the codes, then for the scales.
void SyntheticRow(uint64_t seed, LayerId layer, RowId row,
                  const RowFormat& format, absl::Span<std::byte> out) {
  ENGRAM_CHECK(out.size() == format.row_bytes());
  uint64_t state =
      Mix(Mix(seed + kGolden) ^ ((uint64_t{ToInt(layer)} << 32) | row));
  const auto fill = [&state](absl::Span<std::byte> bytes, auto shape) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      state += kGolden;
      const uint64_t word = shape(Mix(state));
      std::memcpy(&bytes[at], &word, std::min(sizeof(word), bytes.size() - at));
    }
  };
  fill(out.first(format.code_bytes()), WithoutNanCodes);
  fill(out.subspan(format.code_bytes()), ToScales);
}

}  // namespace engram
