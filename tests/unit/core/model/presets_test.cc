#include "core/model/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/layout.h"
#include "core/model/token_map.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PresetsTest, EveryNameIsAConsistentConfig) {
  EXPECT_THAT(PresetNames(),
              ElementsAre("tiny", "odd", "tiny-scale", "v41-mini", "v41"));
  for (const std::string& name : PresetNames()) {
    const absl::StatusOr<EngramConfig> config = PresetConfig(name);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(EngramLayout::Create(*config).ok()) << name;
  }
}

TEST(PresetsTest, RowCountsOfV41) {
  EXPECT_THAT(PresetConfig("v41")->num_embeddings,
              ElementsAre(384006168, 384016682));
}

TEST(PresetsTest, UnknownNameListsTheNames) {
  const absl::Status status = PresetConfig("v42").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("\"v42\"; there are tiny, odd, tiny-scale"));
}

TEST(PresetsTest, MadeUpTokenMapIsTheOneOfTheGoldenCheckpoints) {
  for (const char* name : {"tiny", "odd", "tiny-scale"}) {
    const EngramConfig config = PresetConfig(name).value();
    const absl::StatusOr<TokenMap> golden =
        TokenMap::Load(std::string(ENGRAM_SOURCE_DIR) + "/tests/golden/data/" +
                           name + "/" + kTokenMapFileName,
                       config);
    ASSERT_TRUE(golden.ok()) << golden.status();
    EXPECT_EQ(golden->ids(), absl::MakeConstSpan(MadeUpTokenMap(config)));
  }
}

TEST(PresetsTest, MadeUpTokenMapUsesEveryCompressedId) {
  for (const std::string& name : PresetNames()) {
    const EngramConfig config = PresetConfig(name).value();
    EXPECT_TRUE(TokenMap::Create(MadeUpTokenMap(config), config).ok()) << name;
  }
}

}  // namespace
}  // namespace engram
