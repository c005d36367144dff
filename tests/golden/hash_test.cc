// Row ids with the true layout of DeepSeek-V4.1-Flash, 384M rows a layer.

#include <vector>

#include "compute/hash/ngram_hash.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_file.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

TEST(GoldenHashTest, RowIdsOfTheTrueLayout) {
  const auto golden = test::GoldenFile::Open(
      ENGRAM_SOURCE_DIR "/tests/golden/data/v41.hash.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.status();
  const auto config = PresetConfig("v41");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto layout = EngramLayout::Create(*config);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const auto map =
      TokenMap::Create(golden->Values<int32_t>("token_map"), *config);
  ASSERT_TRUE(map.ok()) << map.status();
  const auto hasher = NgramHasher::Create(*config, *layout, *map);
  ASSERT_TRUE(hasher.ok()) << hasher.status();
  for (size_t layer = 0; layer < hasher->layer_count(); ++layer) {
    const auto wanted = golden->RowIds(layer, hasher->layer_count());
    for (const std::vector<size_t>& chunks : golden->Splits()) {
      const auto ids =
          golden->Hash(*hasher, layer, chunks, config->max_lookback());
      ASSERT_THAT(ids, test::IsOk());
      EXPECT_EQ(*ids, wanted)
          << "layer index " << layer << " in " << chunks.size() << " chunks";
    }
  }
}

}  // namespace
}  // namespace engram
