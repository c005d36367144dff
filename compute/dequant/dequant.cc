#include "compute/dequant/dequant.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compute/dequant/decode_core.h"
#include "core/base/check.h"
#include "core/model/number_formats.h"
#include "core/model/row_format.h"

namespace engram {
namespace {

// Values of all codes: a load each on the CPU, with the bits of E4m3ToFloat.
const std::array<float, 256>& E4m3Table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = E4m3ToFloat(static_cast<uint8_t>(i));
    }
    return values;
  }();
  return table;
}

// Calls block(codes, scale, first value) for every scale block of every row.
template <typename Block>
void ForEachScaleBlock(const RowFormat& format,
                       absl::Span<const std::byte> packed, size_t value_count,
                       Block block) {
  const size_t row_count = packed.size() / format.row_bytes();
  ENGRAM_CHECK(packed.size() == row_count * format.row_bytes());
  ENGRAM_CHECK(value_count == row_count * format.width);
  const auto* row = reinterpret_cast<const uint8_t*>(packed.data());
  size_t at = 0;
  for (size_t r = 0; r < row_count; ++r, row += format.row_bytes()) {
    const uint8_t* const scales = row + format.code_bytes();
    for (size_t b = 0; b < format.scale_bytes(); ++b) {
      block(row + b * format.block_size, E8m0ToFloat(scales[b]), at);
      at += format.block_size;
    }
  }
}

// Values of `count` codes under one scale.
void DecodeBlock(const float* table, const uint8_t* codes, size_t count,
                 float scale, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = table[codes[i]] * scale;
  if (!IsTinyScale(scale)) return;
  for (size_t i = 0; i < count; ++i) out[i] = RequantiseTiny(out[i]);
}

// The reference's quantisation of bf16 values as it stands, for row formats
// whose scale blocks cut across its blocks.
void RequantiseInPlace(absl::Span<float> values) {
  for (size_t at = 0; at < values.size(); at += kQuantBlock) {
    float amax = 0;
    for (size_t i = at; i < at + kQuantBlock; ++i) {
      const float magnitude = std::fabs(values[i]);
      if (magnitude > amax) amax = magnitude;  // passes NaN over
    }
    const float scale = QuantScale(amax);
    for (size_t i = at; i < at + kQuantBlock; ++i) {
      values[i] = Requantise(values[i], scale);
    }
  }
}

}  // namespace

void DecodeRowsBf16(const RowFormat& format, absl::Span<const std::byte> packed,
                    absl::Span<uint16_t> out) {
  const float* const table = E4m3Table().data();
  ForEachScaleBlock(format, packed, out.size(),
                    [&](const uint8_t* codes, float scale, size_t at) {
                      for (size_t i = 0; i < format.block_size; ++i) {
                        out[at + i] = FloatToBf16(table[codes[i]] * scale);
                      }
                    });
}

void DecodeRowsForProjection(const RowFormat& format,
                             absl::Span<const std::byte> packed,
                             absl::Span<float> out) {
  ENGRAM_CHECK(out.size() % kQuantBlock == 0);
  const float* const table = E4m3Table().data();
  if (format.block_size % kQuantBlock == 0) {
    ForEachScaleBlock(format, packed, out.size(),
                      [&](const uint8_t* codes, float scale, size_t at) {
                        DecodeBlock(table, codes, format.block_size, scale,
                                    &out[at]);
                      });
    return;
  }
  ForEachScaleBlock(format, packed, out.size(),
                    [&](const uint8_t* codes, float scale, size_t at) {
                      for (size_t i = 0; i < format.block_size; ++i) {
                        out[at + i] = RoundToBf16(table[codes[i]] * scale);
                      }
                    });
  RequantiseInPlace(out);
}

}  // namespace engram
