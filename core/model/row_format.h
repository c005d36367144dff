#ifndef ENGRAM_CORE_MODEL_ROW_FORMAT_H_
#define ENGRAM_CORE_MODEL_ROW_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace engram {

// How one packed row of a table is laid out: `width` codes, then
// width / block_size scales, each scale for block_size features in a row.
//
//   | code 0 | ... | code width-1 | scale 0 | ... | scale width/block_size-1 |
//
// Codes first, interleaved with their scales: one row is one read (1.06 pages
// against 2 for two arrays). 256 + 8 = 264 bytes in V4.1.
struct RowFormat {
  std::string code_dtype = "F8_E4M3";
  std::string scale_dtype = "F8_E8M0";
  uint32_t width = 0;
  uint32_t block_size = 32;

  // A format this build can decode. INVALID_ARGUMENT names the value: a dtype
  // other than F8_E4M3 / F8_E8M0, a width or block size of 0, a width that
  // block_size does not divide, a row above 1 MiB.
  static absl::StatusOr<RowFormat> Create(const std::string& code_dtype,
                                          const std::string& scale_dtype,
                                          uint64_t width, uint64_t block_size);

  size_t code_bytes() const { return width; }
  size_t scale_bytes() const { return width / block_size; }
  size_t row_bytes() const { return code_bytes() + scale_bytes(); }

  friend bool operator==(const RowFormat&, const RowFormat&) = default;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_ROW_FORMAT_H_
