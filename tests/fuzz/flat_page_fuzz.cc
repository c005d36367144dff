// Input: the beginning of a file of rows; a header that lacks its checksum gets
// it, so that what is behind is reached too.

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/wire/crc32c.h"
#include "table_server/store/flat_page.h"
#include "tests/fuzz/fuzz_input.h"

namespace engram {
namespace {

// What is taken is what would be written.
void CheckHeader(absl::Span<const std::byte> page) {
  const auto header = ParseFlatHeader(page);
  if (!header.ok()) return;
  std::vector<std::byte> again(kFlatHeaderBytes);
  WriteFlatHeader(*header, absl::MakeSpan(again));
  const auto parsed = ParseFlatHeader(again);
  ENGRAM_CHECK(parsed.ok() && *parsed == *header);
  ENGRAM_CHECK(header->page_bytes() > header->row_bytes);
  ENGRAM_CHECK(header->rows_per_page() > 0);
  ENGRAM_CHECK(header->page_count() * header->rows_per_page() >= header->rows);
  ENGRAM_CHECK((header->page_count() - 1) * header->rows_per_page() <
               header->rows);
  ENGRAM_CHECK(header->file_bytes() > header->rows * header->row_bytes);
}

void CheckPage(std::vector<std::byte> page) {
  const PartitionRef ref = {LayerId{1}, PartitionId{2}};
  const FlatSeal seal("version", ref);
  (void)seal.Check(3, page);
  seal.Close(3, absl::MakeSpan(page));
  ENGRAM_CHECK(seal.Check(3, page).ok());
  ENGRAM_CHECK(!seal.Check(4, page).ok());
}

}  // namespace
}  // namespace engram

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> page(engram::kFlatHeaderBytes);
  std::memcpy(page.data(), data, std::min(size, page.size()));
  engram::CheckHeader(page);
  engram::CheckPage(page);
  const size_t covered = page.size() - sizeof(uint32_t);
  const uint32_t crc =
      engram::ExtendCrc32c(0, absl::MakeConstSpan(page).subspan(0, covered));
  std::memcpy(page.data() + covered, &crc, sizeof(crc));
  engram::CheckHeader(page);
  return 0;
}
