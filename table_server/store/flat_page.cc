#include "table_server/store/flat_page.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/crc32c.h"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they lie in memory");

constexpr char kMagic[8] = {'E', 'N', 'G', 'R', 'F', 'L', 'A', 'T'};
constexpr uint32_t kFormat = 1;
constexpr size_t kPageUnit = 4096;
constexpr size_t kEndBytes = 8;  // number and checksum
constexpr size_t kCrcBytes = 4;
constexpr uint64_t kMaxRows = uint64_t{1} << 32;

// The beginning of a header page as it lies in the file.
struct RawHeader {
  char magic[sizeof(kMagic)];
  uint32_t format;
  uint32_t layer;
  uint32_t partition;
  uint32_t row_bytes;
  uint32_t page_bytes;
  uint32_t zero;
  uint64_t rows;
  uint64_t page_count;
  char version[kFlatVersionBytes];
};
static_assert(sizeof(RawHeader) == 112);

absl::Span<const std::byte> AsBytes(const uint32_t& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof(value)};
}

uint32_t LoadU32(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

RawHeader ToRaw(const FlatHeader& header) {
  RawHeader raw{};
  std::memcpy(raw.magic, kMagic, sizeof(kMagic));
  raw.format = kFormat;
  raw.layer = ToInt(header.ref.layer);
  raw.partition = ToInt(header.ref.partition);
  raw.row_bytes = header.row_bytes;
  raw.rows = header.rows;
  raw.page_bytes = static_cast<uint32_t>(header.page_bytes());
  raw.page_count = header.page_count();
  std::memcpy(raw.version, header.version.data(), kFlatVersionBytes);
  return raw;
}

absl::Status CheckNumbers(const RawHeader& raw) {
  if (raw.format != kFormat) {
    return absl::DataLossError(absl::StrCat("a file of format ", raw.format,
                                            ", this build knows ", kFormat));
  }
  if (raw.row_bytes == 0 || raw.row_bytes > kMaxFlatRowBytes) {
    return absl::DataLossError(absl::StrCat("rows of ", raw.row_bytes,
                                            " bytes, 1 .. ", kMaxFlatRowBytes,
                                            " are possible"));
  }
  if (raw.rows == 0 || raw.rows > kMaxRows) {
    return absl::DataLossError(
        absl::StrCat(raw.rows, " rows, 1 .. ", kMaxRows, " are possible"));
  }
  return absl::OkStatus();
}

}  // namespace

size_t FlatPageBytes(size_t row_bytes) {
  ENGRAM_CHECK(row_bytes > 0 && row_bytes <= kMaxFlatRowBytes);
  return (row_bytes + kEndBytes + kPageUnit - 1) / kPageUnit * kPageUnit;
}

uint64_t FlatHeader::rows_per_page() const {
  return (page_bytes() - kEndBytes) / row_bytes;
}

uint64_t FlatHeader::page_count() const {
  return (rows + rows_per_page() - 1) / rows_per_page();
}

uint64_t FlatHeader::RowsIn(uint32_t page) const {
  const uint64_t before = page * rows_per_page();
  return before < rows ? std::min(rows - before, rows_per_page()) : 0;
}

void WriteFlatHeader(const FlatHeader& header, absl::Span<std::byte> page) {
  ENGRAM_CHECK(page.size() == kFlatHeaderBytes);
  ENGRAM_CHECK(header.version.size() == kFlatVersionBytes);
  const RawHeader raw = ToRaw(header);
  ENGRAM_CHECK(CheckNumbers(raw).ok());
  std::memset(page.data(), 0, page.size());
  std::memcpy(page.data(), &raw, sizeof(raw));
  const size_t covered = page.size() - kCrcBytes;
  const uint32_t crc = ExtendCrc32c(0, page.subspan(0, covered));
  std::memcpy(page.data() + covered, &crc, sizeof(crc));
}

absl::StatusOr<FlatHeader> ParseFlatHeader(absl::Span<const std::byte> page) {
  ENGRAM_CHECK(page.size() == kFlatHeaderBytes);
  RawHeader raw;
  std::memcpy(&raw, page.data(), sizeof(raw));
  if (std::memcmp(raw.magic, kMagic, sizeof(kMagic)) != 0) {
    return absl::DataLossError("not a file of rows");
  }
  const size_t covered = page.size() - kCrcBytes;
  if (ExtendCrc32c(0, page.subspan(0, covered)) !=
      LoadU32(page.data() + covered)) {
    return absl::DataLossError("the header's checksum is not its own");
  }
  if (const absl::Status status = CheckNumbers(raw); !status.ok()) {
    return status;
  }
  FlatHeader header;
  header.version.assign(raw.version, sizeof(raw.version));
  header.ref = {LayerId{raw.layer}, PartitionId{raw.partition}};
  header.row_bytes = raw.row_bytes;
  header.rows = raw.rows;
  if (raw.page_bytes != header.page_bytes() ||
      raw.page_count != header.page_count()) {
    return absl::DataLossError(
        absl::StrCat(raw.page_count, " pages of ", raw.page_bytes, " bytes, ",
                     header.page_count(), " of ", header.page_bytes(),
                     " are needed for ", raw.rows, " rows"));
  }
  return header;
}

FlatSeal::FlatSeal(absl::string_view version, const PartitionRef& ref) {
  seed_ = ExtendCrc32c(
      0, {reinterpret_cast<const std::byte*>(version.data()), version.size()});
  seed_ = ExtendCrc32c(seed_, AsBytes(ToInt(ref.layer)));
  seed_ = ExtendCrc32c(seed_, AsBytes(ToInt(ref.partition)));
}

uint32_t FlatSeal::CrcOf(uint32_t number,
                         absl::Span<const std::byte> page) const {
  return ExtendCrc32c(ExtendCrc32c(seed_, AsBytes(number)),
                      page.subspan(0, page.size() - kCrcBytes));
}

void FlatSeal::Close(uint32_t number, absl::Span<std::byte> page) const {
  std::memcpy(page.data() + page.size() - kEndBytes, &number, sizeof(number));
  const uint32_t crc = CrcOf(number, page);
  std::memcpy(page.data() + page.size() - kCrcBytes, &crc, sizeof(crc));
}

absl::Status FlatSeal::Check(uint32_t number,
                             absl::Span<const std::byte> page) const {
  const uint32_t crc = LoadU32(page.data() + page.size() - kCrcBytes);
  const uint32_t written = LoadU32(page.data() + page.size() - kEndBytes);
  if (crc == CrcOf(number, page) && written == number) return absl::OkStatus();
  if (written != number) {
    return absl::DataLossError(
        absl::StrCat("page ", number, " says that it is page ", written));
  }
  return absl::DataLossError(
      absl::StrCat("page ", number, " is not what was put: its checksum is ",
                   absl::Hex(CrcOf(number, page)), ", not ", absl::Hex(crc)));
}

}  // namespace engram
