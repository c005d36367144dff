#include "core/base/check.h"
#include "core/model/token_map.h"
#include "tests/fuzz/fuzz_input.h"

// Input: the bytes of a token map of as many ids as there are; the smallest
// sizes that a map can have are tried with it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const engram::test::MemoryFile file(engram::test::AsText(data, size));
  engram::EngramConfig config;
  config.vocab_size = static_cast<uint32_t>(size / sizeof(int32_t));
  if (config.vocab_size == 0) return 0;  // no config has that
  config.pad_id = config.vocab_size / 2;
  for (uint32_t compressed = 1; compressed <= 8; ++compressed) {
    config.compressed_vocab_size = compressed;
    const auto map = engram::TokenMap::Load(file.path(), config);
    if (!map.ok()) continue;
    ENGRAM_CHECK(map->ids().size() == config.vocab_size);
    for (const int32_t id : map->ids()) {
      ENGRAM_CHECK(id >= 0 && static_cast<uint32_t>(id) < compressed);
    }
    ENGRAM_CHECK(map->pad() == map->ids()[config.pad_id]);
  }
  return 0;
}
