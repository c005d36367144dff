// Row ids of every golden file by the GPU's hash.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/hash/ngram_hash.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_file.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/compute/hash/emulated_hash.h"

namespace engram {
namespace {

constexpr char kData[] = ENGRAM_SOURCE_DIR "/tests/golden/data/";

// In one batch: what follows each other in it are chunks, wherever they stand
// in their sequences.
std::vector<RowId> Hash(const test::EmulatedHash& hash,
                        const test::GoldenFile& golden,
                        const EngramConfig& config,
                        const std::vector<size_t>& lengths) {
  std::vector<TokenChunk> chunks;
  for (const test::GoldenChunk& chunk :
       golden.Chunks(lengths, config.max_lookback())) {
    chunks.push_back(chunk.chunk);
  }
  const auto result = hash.Hash(chunks);
  EXPECT_EQ(result.first_bad, 0xFFFFFFFF);
  return result.row_ids;
}

void CheckGolden(const std::string& file, const EngramConfig& config,
                 const absl::StatusOr<TokenMap>& map) {
  ASSERT_THAT(map, test::IsOk());
  const auto golden = test::GoldenFile::Open(absl::StrCat(kData, file));
  ASSERT_THAT(golden, test::IsOk());
  const auto layout = EngramLayout::Create(config);
  ASSERT_THAT(layout, test::IsOk());
  const size_t layers = layout->layers().size();
  std::vector<RowId> wanted;
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::vector<RowId> rows = golden->RowIds(layer, layers);
    wanted.insert(wanted.end(), rows.begin(), rows.end());
  }
  const test::EmulatedHash hash(config, *layout, *map);
  for (const std::vector<size_t>& lengths : golden->Splits()) {
    EXPECT_EQ(Hash(hash, *golden, config, lengths), wanted)
        << file << " in " << lengths.size() << " chunks";
  }
}

TEST(GoldenHashKernelTest, RowIdsOfTheTrueLayout) {
  const auto golden =
      test::GoldenFile::Open(absl::StrCat(kData, "v41.hash.safetensors"));
  ASSERT_THAT(golden, test::IsOk());
  const auto config = PresetConfig("v41");
  ASSERT_THAT(config, test::IsOk());
  CheckGolden("v41.hash.safetensors", *config,
              TokenMap::Create(golden->Values<int32_t>("token_map"), *config));
}

TEST(GoldenHashKernelTest, RowIdsOfTheCheckpoints) {
  for (const std::string name : {"tiny", "odd", "tiny-scale"}) {
    const std::string folder = absl::StrCat(kData, name, "/");
    const auto config = LoadConfig(absl::StrCat(folder, "config.json"));
    ASSERT_THAT(config, test::IsOk());
    CheckGolden(
        absl::StrCat(name, ".golden.safetensors"), *config,
        TokenMap::Load(absl::StrCat(folder, kTokenMapFileName), *config));
  }
}

TEST(GoldenHashKernelTest, RowIdsOfTheShapesOfV41) {
  const auto config = PresetConfig("v41-mini");
  ASSERT_THAT(config, test::IsOk());
  CheckGolden("v41-mini.golden.safetensors", *config,
              TokenMap::Create(MadeUpTokenMap(*config), *config));
}

}  // namespace
}  // namespace engram
