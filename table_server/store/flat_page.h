#ifndef ENGRAM_TABLE_SERVER_STORE_FLAT_PAGE_H_
#define ENGRAM_TABLE_SERVER_STORE_FLAT_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// The file of one partition: a header, then pages of whole rows, so that one
// aligned direct read has a row and all that is needed to check it.
//
//   | header, 4096 | page 0 | page 1 | ...
//
//   page:    | row | row | ... | zeros | page number u32 | crc32c u32 |
//   header:  | "ENGRFLAT" | format u32 | layer u32 | partition u32 |
//            | row_bytes u32 | page_bytes u32 | 0 u32 | rows u64 |
//            | page_count u64 | version, 64 hex digits | zeros | crc32c u32 |
//
// All little-endian. A page has 4096 bytes, or as many times that as a row
// with number and checksum needs. The checksum of a page covers version, layer
// and partition as well, so that a page of another place does not pass.

inline constexpr size_t kFlatHeaderBytes = 4096;
inline constexpr size_t kMaxFlatRowBytes = size_t{1} << 20;
inline constexpr size_t kFlatVersionBytes = 64;

// REQUIRES: 0 < row_bytes <= kMaxFlatRowBytes.
size_t FlatPageBytes(size_t row_bytes);

// What a file holds, and how it lies there.
struct FlatHeader {
  std::string version;  // of the table
  PartitionRef ref = {};
  uint32_t row_bytes = 0;
  uint64_t rows = 0;

  size_t page_bytes() const { return FlatPageBytes(row_bytes); }
  uint64_t rows_per_page() const;
  uint64_t page_count() const;
  uint64_t file_bytes() const {
    return kFlatHeaderBytes + page_count() * page_bytes();
  }
  uint64_t OffsetOf(uint32_t page) const {
    return kFlatHeaderBytes + uint64_t{page} * page_bytes();
  }
  // Fewer than rows_per_page in the last.
  uint64_t RowsIn(uint32_t page) const;

  friend bool operator==(const FlatHeader&, const FlatHeader&) = default;
};

// REQUIRES: page.size() == kFlatHeaderBytes; a version of 64 characters;
// row_bytes and rows as ParseFlatHeader takes them.
void WriteFlatHeader(const FlatHeader& header, absl::Span<std::byte> page);

// DATA_LOSS: not a header, or not as it was written; an unknown format; a row
// size beyond 1 .. kMaxFlatRowBytes; rows beyond 1 .. 2^32; pages other than
// those that WriteFlatHeader gives. REQUIRES: page.size() == kFlatHeaderBytes.
absl::StatusOr<FlatHeader> ParseFlatHeader(absl::Span<const std::byte> page);

// Makes and checks the ends of pages of one partition.
class FlatSeal {
 public:
  FlatSeal(absl::string_view version, const PartitionRef& ref);

  // Writes number and checksum behind the rows of `page`, all of it.
  void Close(uint32_t number, absl::Span<std::byte> page) const;
  // DATA_LOSS: not what Close left under this number.
  absl::Status Check(uint32_t number, absl::Span<const std::byte> page) const;

 private:
  uint32_t CrcOf(uint32_t number, absl::Span<const std::byte> page) const;

  uint32_t seed_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FLAT_PAGE_H_
