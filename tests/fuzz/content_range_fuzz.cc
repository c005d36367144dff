#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/http/content_range.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto range =
      engram::ParseContentRange(engram::test::AsText(data, size));
  if (!range.ok()) return 0;
  ENGRAM_CHECK(range->range.begin < range->range.end);
  ENGRAM_CHECK(range->range.end <= range->file_bytes);
  const auto again = engram::ParseContentRange(
      absl::StrCat("bytes ", range->range.begin, "-", range->range.end - 1, "/",
                   range->file_bytes));
  ENGRAM_CHECK(again.ok() && *again == *range);
  return 0;
}
