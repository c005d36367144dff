#include "core/base/check.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = engram::ParseConfig(engram::test::AsText(data, size));
  if (!config.ok()) return 0;
  const auto again = engram::ParseConfig(engram::ConfigToJson(*config));
  ENGRAM_CHECK(again.ok() && *again == *config);
  // A layout of many primes is correct and slow.
  if (config->layer_ids.size() * config->columns() > 256) return 0;
  const auto layout = engram::EngramLayout::Create(*config);
  ENGRAM_CHECK(!layout.ok() ||
               layout->layers().size() == config->layer_ids.size());
  return 0;
}
