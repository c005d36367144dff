// Input: bytes of data in decimal, a new line, the header's JSON. Tried as a
// header alone, as a file made of it, and as the bytes of a file.

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/safetensors.h"
#include "core/model/safetensors_header.h"
#include "tests/fuzz/fuzz_input.h"

namespace engram {
namespace {

// Every tensor lies within the mapping, and its bytes can be copied.
void CheckFile(absl::string_view content) {
  const test::MemoryFile file(content);
  const auto parsed = SafetensorsFile::Open(file.path());
  if (!parsed.ok()) return;
  size_t data_bytes = 0;
  for (const auto& [name, tensor] : parsed->tensors()) {
    data_bytes += tensor.bytes.size();
    if (DtypeBytes(tensor.dtype) != 1) continue;
    const auto copy = CopyTensor<uint8_t>(tensor);
    ENGRAM_CHECK(copy.ok() && copy->size() == tensor.element_count());
  }
  ENGRAM_CHECK(data_bytes < content.size());
}

void CheckHeader(absl::string_view json, uint64_t data_bytes) {
  const auto header = ParseSafetensorsHeader(json, data_bytes);
  if (!header.ok()) return;
  uint64_t covered = 0;
  for (const auto& [name, entry] : header->tensors) {
    ENGRAM_CHECK(entry.begin <= entry.end && entry.end <= data_bytes);
    covered += entry.end - entry.begin;
  }
  ENGRAM_CHECK(covered == data_bytes);
}

}  // namespace
}  // namespace engram

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input = engram::test::AsText(data, size);
  engram::CheckFile(input);
  const size_t line_end = std::min(input.find('\n'), input.size());
  const absl::string_view json =
      input.substr(std::min(line_end + 1, input.size()));
  uint64_t data_bytes = 0;
  if (!absl::SimpleAtoi(input.substr(0, line_end), &data_bytes)) return 0;
  engram::CheckHeader(json, data_bytes);

  constexpr uint64_t kLargestFile = 4096;
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>(uint64_t{json.size()} >> (8 * i)));
  }
  absl::StrAppend(&file, json);
  file.append(std::min(data_bytes, kLargestFile), '\x01');
  engram::CheckFile(file);
  return 0;
}
