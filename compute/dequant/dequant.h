#ifndef ENGRAM_COMPUTE_DEQUANT_DEQUANT_H_
#define ENGRAM_COMPUTE_DEQUANT_DEQUANT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/model/row_format.h"

namespace engram {

// Packed rows -> bf16 bits, code * 2^(scale - 127) rounded to bf16: the rows
// that the reference's lookup returns.
// REQUIRES: out.size() == rows * width.
void DecodeRowsBf16(const RowFormat& format, absl::Span<const std::byte> packed,
                    absl::Span<uint16_t> out);

// Packed rows -> the float32 values that the projection multiplies. The
// reference re-quantises bf16 rows, by blocks of 32, before its fp8 product.
// That gives back the stored values except in a block with amax < 1e-4: there
// each value is rounded to e4m3 at scale 2^-22 (the tiny-scale rule).
// REQUIRES: out.size() == rows * width, and a multiple of 32.
void DecodeRowsForProjection(const RowFormat& format,
                             absl::Span<const std::byte> packed,
                             absl::Span<float> out);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DEQUANT_H_
