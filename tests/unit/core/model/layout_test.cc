#include "core/model/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "core/model/presets.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EngramConfig Preset(absl::string_view name) {
  absl::StatusOr<EngramConfig> config = PresetConfig(name);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

EngramConfig WithoutRows(EngramConfig config) {
  config.num_embeddings.clear();
  return config;
}

EngramLayout MakeLayout(const EngramConfig& config) {
  absl::StatusOr<EngramLayout> layout = EngramLayout::Create(config);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return *std::move(layout);
}

bool SlowIsPrime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

// The rule as it is stated: each size starts again and skips what is taken.
std::vector<std::vector<uint32_t>> SlowPrimes(const EngramConfig& config) {
  std::set<uint32_t> taken;
  std::vector<std::vector<uint32_t>> layers(config.layer_ids.size());
  for (std::vector<uint32_t>& layer : layers) {
    for (uint32_t size = 2; size <= config.max_ngram_size; ++size) {
      uint32_t candidate = config.engram_vocab_size;
      for (uint32_t head = 0; head < config.n_heads; ++candidate) {
        if (!SlowIsPrime(candidate)) continue;
        if (!taken.insert(candidate).second) continue;
        layer.push_back(candidate);
        ++head;
      }
    }
  }
  return layers;
}

TEST(EngramLayoutTest, V41IsTheGoldenFileToTheByte) {
  std::ifstream file(ENGRAM_SOURCE_DIR "/tests/golden/data/v41.layout.json");
  std::stringstream wanted;
  wanted << file.rdbuf();
  ASSERT_FALSE(wanted.str().empty());
  const EngramConfig config = WithoutRows(Preset("v41"));
  EXPECT_EQ(MakeLayout(config).ToJson(config) + "\n", wanted.str());
}

TEST(EngramLayoutTest, GoldenCheckpointsHaveTheRowsTheirConfigSays) {
  for (const char* name : {"tiny", "odd", "tiny-scale"}) {
    const std::string path = std::string(ENGRAM_SOURCE_DIR) +
                             "/tests/golden/data/" + name + "/config.json";
    const absl::StatusOr<EngramConfig> config = LoadConfig(path);
    ASSERT_TRUE(config.ok()) << config.status();
    const EngramLayout layout = MakeLayout(*config);
    ASSERT_EQ(layout.layers().size(), config->num_embeddings.size());
    for (size_t i = 0; i < layout.layers().size(); ++i) {
      EXPECT_EQ(layout.layers()[i].row_count, config->num_embeddings[i]);
    }
  }
}

// Small vocabularies: 56-bit values, and the bound of a vocabulary of one.
TEST(EngramLayoutTest, MultipliersAreWhatNumpyDraws) {
  EngramConfig config = Preset("odd");
  EngramLayout layout = MakeLayout(config);
  EXPECT_THAT(
      layout.layers()[0].multipliers,
      ElementsAre(47763696060069407, 20230432777598583, 3072471991256081));
  EXPECT_THAT(
      layout.layers()[2].multipliers,
      ElementsAre(66363088548460241, 56213105179643373, 60279409560681279));
  EXPECT_THAT(layout.ToJson(config), HasSubstr("\"47763696060069407\""));

  config.compressed_vocab_size = 1;
  layout = MakeLayout(config);
  EXPECT_THAT(layout.layers()[1].multipliers,
              ElementsAre(2727703110629360017, 8091777532450917643,
                          1077915957631160223));
}

TEST(EngramLayoutTest, ProductsStayBelow63Bits) {
  EngramConfig config = WithoutRows(Preset("v41-mini"));
  config.vocab_size = std::numeric_limits<int32_t>::max();
  config.layer_ids = {0, 1, 2, 3, 5, 8, 13, 21, 34, 65535};
  for (const uint32_t compressed :
       {1U, 2U, 3U, 123U, 99092U, 1U << 30, (1U << 31) - 1}) {
    config.compressed_vocab_size = compressed;
    const EngramLayout layout = MakeLayout(config);
    for (const LayerLayout& layer : layout.layers()) {
      ASSERT_EQ(layer.multipliers.size(), config.max_ngram_size);
      for (const int64_t multiplier : layer.multipliers) {
        EXPECT_GT(multiplier, 0);
        EXPECT_EQ(multiplier % 2, 1);
        EXPECT_LT(static_cast<unsigned __int128>(multiplier) * compressed,
                  static_cast<unsigned __int128>(1) << 63);
      }
    }
  }
}

TEST(EngramLayoutTest, PrimesFollowTheRuleForOtherShapes) {
  EngramConfig config = WithoutRows(Preset("odd"));
  for (const uint32_t first : {2U, 3U, 60U, 62U, 3721U, 99991U, 16000000U}) {
    for (const uint32_t heads : {1U, 3U, 7U}) {
      config.engram_vocab_size = first;
      config.n_heads = heads;
      config.max_ngram_size = heads + 2;
      const EngramLayout layout = MakeLayout(config);
      const std::vector<std::vector<uint32_t>> wanted = SlowPrimes(config);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const LayerLayout& layer = layout.layers()[i];
        EXPECT_EQ(layer.primes, wanted[i]) << first << " " << heads;
        uint64_t offset = 0;
        for (size_t column = 0; column < layer.primes.size(); ++column) {
          EXPECT_EQ(layer.offsets[column], offset);
          offset += layer.primes[column];
        }
        EXPECT_EQ(layer.row_count, offset);
      }
    }
  }
}

TEST(EngramLayoutTest, LargestPrimesDoNotOverflow) {
  EngramConfig config = WithoutRows(Preset("odd"));
  config.engram_vocab_size = 2147483647;  // prime itself
  config.n_heads = 1;
  config.max_ngram_size = 2;
  config.layer_ids = {4, 9};
  const EngramLayout layout = MakeLayout(config);
  EXPECT_THAT(layout.layers()[0].primes, ElementsAre(2147483647U));
  EXPECT_THAT(layout.layers()[1].primes, ElementsAre(2147483659U));
}

TEST(EngramLayoutTest, RefusesRowCountsThatDiffer) {
  EngramConfig config = Preset("tiny");
  config.num_embeddings[1] = 30000;
  const absl::Status status = EngramLayout::Create(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("layer 14 has 30058 rows by its primes, "
                        "engram_num_embeddings says 30000"));
}

TEST(EngramLayoutTest, RefusesMoreRowsThanRowIdsHold) {
  EngramConfig config = WithoutRows(Preset("v41"));
  config.engram_vocab_size = 200000000;
  const absl::Status status = EngramLayout::Create(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the limit is 4294967296"));
}

TEST(EngramLayoutTest, IndexOfNamesTheLayersThereAre) {
  const EngramLayout layout = MakeLayout(Preset("tiny"));
  EXPECT_EQ(layout.IndexOf(LayerId{14}).value(), 1U);
  const absl::Status status = layout.IndexOf(LayerId{2}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("layer 2"));
  EXPECT_THAT(status.message(), HasSubstr("1, 14"));
}

}  // namespace
}  // namespace engram
