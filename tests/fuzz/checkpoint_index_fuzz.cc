#include <string>

#include "core/base/check.h"
#include "core/model/checkpoint_index.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index =
      engram::ParseCheckpointIndex(engram::test::AsText(data, size));
  if (!index.ok()) return 0;
  for (const auto& [tensor, file] : *index) {
    ENGRAM_CHECK(file.find('/') == std::string::npos);
    ENGRAM_CHECK(file.find("..") == std::string::npos && !file.empty());
  }
  return 0;
}
