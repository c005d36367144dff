#include "core/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/model/presets.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

// The Engram part of DeepSeek-V4.1-Flash's config.json among other keys of it.
constexpr char kV41Config[] = R"({
  "vocab_size": 129280, "dim": 5120, "moe_inter_dim": 2048, "n_layers": 40,
  "norm_eps": 1e-20, "rope_factor": 16, "hc_mult": 4, "hc_eps": 1e-06,
  "kv_source_layers": [2, 8, 14, 20], "engram_layer_ids": [1, 14],
  "engram_vocab_size": 16000000,
  "engram_num_embeddings": [384006168, 384016682],
  "engram_max_ngram_size": 4, "engram_pad_id": 2,
  "engram_compressed_vocab_size": 99092, "dtype": "fp8",
  "vision_max_wh_ratio": null, "engram_n_heads": 8, "engram_head_dim": 256,
  "nested": {"engram_head_dim": "another"}
})";

Json Tiny() { return Json::parse(ConfigToJson(PresetConfig("tiny").value())); }

std::string ErrorOf(const std::string& text) {
  const absl::Status status = ParseConfig(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(ConfigTest, ReadsTheWholeModelsConfig) {
  const absl::StatusOr<EngramConfig> config = ParseConfig(kV41Config);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, PresetConfig("v41").value());
  EXPECT_EQ(config->columns(), 24U);
  EXPECT_EQ(config->wkv_in(), 6144U);
  EXPECT_EQ(config->wkv_out(), 25600U);
  EXPECT_EQ(config->max_lookback(), 3U);
  EXPECT_EQ(config->norm_eps, 1e-20);
  EXPECT_THAT(config->layer_ids, ElementsAre(1, 14));
}

TEST(ConfigTest, GoldenCheckpointsAreThePresets) {
  for (const char* name : {"tiny", "odd", "tiny-scale"}) {
    const absl::StatusOr<EngramConfig> config =
        LoadConfig(std::string(ENGRAM_SOURCE_DIR) + "/tests/golden/data/" +
                   name + "/config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(*config, PresetConfig(name).value()) << name;
  }
}

// The text is part of a table's identity: it must never change.
TEST(ConfigTest, CanonicalText) {
  const absl::StatusOr<EngramConfig> config = ParseConfig(kV41Config);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ConfigToJson(*config),
            R"({"vocab_size":129280,"dim":5120,"hc_mult":4,"norm_eps":1e-20,)"
            R"("engram_layer_ids":[1,14],"engram_vocab_size":16000000,)"
            R"("engram_max_ngram_size":4,"engram_pad_id":2,)"
            R"("engram_compressed_vocab_size":99092,"engram_n_heads":8,)"
            R"("engram_head_dim":256,)"
            R"("engram_num_embeddings":[384006168,384016682]})");
}

TEST(ConfigTest, TextAndBackIsTheSameValue) {
  for (const std::string& name : PresetNames()) {
    EngramConfig config = PresetConfig(name).value();
    for (const double eps : {1e-20, 1e-6, 0.1, 1.0, 1.2345678901234567e-30}) {
      config.norm_eps = eps;
      EXPECT_EQ(ParseConfig(ConfigToJson(config)).value(), config);
    }
    config.num_embeddings.clear();
    EXPECT_EQ(ParseConfig(ConfigToJson(config)).value(), config);
  }
}

TEST(ConfigTest, RowCountsMayBeAbsent) {
  Json json = Tiny();
  json.erase("engram_num_embeddings");
  EXPECT_THAT(ParseConfig(json.dump()).value().num_embeddings, IsEmpty());
}

TEST(ConfigTest, EveryOtherKeyMustBeThere) {
  const Json tiny = Tiny();
  for (const auto& [key, value] : tiny.items()) {
    if (key == "engram_num_embeddings") continue;
    Json json = tiny;
    json.erase(key);
    EXPECT_THAT(ErrorOf(json.dump()), HasSubstr(key));
  }
}

struct BadValue {
  const char* key;
  Json value;
  const char* message;
};

TEST(ConfigTest, BadValuesAreNamedWithTheirLimit) {
  const std::vector<BadValue> cases = {
      {"vocab_size", 0, "vocab_size is 0, not within 1 .. 2147483647"},
      {"vocab_size", 2147483648, "limit is 2147483647"},
      {"vocab_size", 399,
       "engram_compressed_vocab_size 400 is above vocab_size 399"},
      {"vocab_size", -1, "vocab_size"},
      {"vocab_size", 512.0, "vocab_size"},
      {"vocab_size", 1e300, "vocab_size"},
      {"vocab_size", "512", "vocab_size"},
      {"vocab_size", true, "vocab_size"},
      {"vocab_size", nullptr, "vocab_size"},
      {"dim", 100, "dim is 100, not a multiple of 32"},
      {"dim", 65568, "limit is 65536"},
      {"dim", 18446744073709551615U, "18446744073709551615"},
      {"hc_mult", 0, "hc_mult is 0, not within 1 .. 64"},
      {"norm_eps", 0, "norm_eps is 0, not within"},
      {"norm_eps", -1e-6, "norm_eps is -1e-06, not within"},
      {"norm_eps", 1e-39, "norm_eps is 1e-39, not within"},
      {"norm_eps", 2, "norm_eps is 2, not within"},
      {"norm_eps", "1e-6", "norm_eps is a string, not a number"},
      {"engram_vocab_size", 1, "engram_vocab_size is 1, not within 2 .."},
      {"engram_max_ngram_size", 1, "not within 2 .. 32"},
      {"engram_max_ngram_size", 33, "limit is 32"},
      {"engram_pad_id", 512, "engram_pad_id 512 is not below vocab_size 512"},
      {"engram_compressed_vocab_size", 0, "not within 1 .."},
      {"engram_compressed_vocab_size", 513, "513 is above vocab_size 512"},
      {"engram_n_heads", 0, "engram_n_heads is 0, not within 1 .. 1024"},
      {"engram_n_heads", 342, "is 1026, not within 1 .. 1024"},
      {"engram_head_dim", 48, "engram_head_dim is 48, not a multiple of 32"},
      {"engram_head_dim", 65536,
       "(columns * engram_head_dim) is 1572864, not within 1 .. 1048576"},
      {"engram_layer_ids", 1, "engram_layer_ids is a number, not a list"},
      {"engram_layer_ids", Json::array(), "length of engram_layer_ids is 0"},
      {"engram_layer_ids", {1, "14"}, "not a whole number"},
      {"engram_layer_ids", {1, -14}, "not a whole number"},
      {"engram_layer_ids", {14, 1}, "has 1 after 14: it must ascend"},
      {"engram_layer_ids", {1, 1}, "has 1 after 1: it must ascend"},
      {"engram_layer_ids", {1, 65536}, "65536, not within 0 .. 65535"},
      {"engram_layer_ids", Json(std::vector<int>(65, 0)),
       "is 65, not within 1 .. 64"},
      {"engram_num_embeddings", {25874}, "has 1 entries for 2 layers"},
      {"engram_num_embeddings", {25874, 0}, "is 0, not within 1 .."},
      {"engram_num_embeddings", {25874, 4294967297}, "4294967297, not within"},
      {"engram_num_embeddings", nullptr, "is a null, not a list"},
  };
  for (const BadValue& bad : cases) {
    Json json = Tiny();
    json[bad.key] = bad.value;
    EXPECT_THAT(ErrorOf(json.dump()), HasSubstr(bad.message)) << json.dump();
  }
}

TEST(ConfigTest, ProjectionOutputIsBounded) {
  Json json = Tiny();
  json["dim"] = 32768;
  json["hc_mult"] = 32;
  EXPECT_THAT(ErrorOf(json.dump()),
              HasSubstr("(dim * (hc_mult + 1)) is 1081344, not within 1 .. "
                        "1048576"));
}

TEST(ConfigTest, ValidateRefusesWhatParseWould) {
  EngramConfig config = PresetConfig("tiny").value();
  EXPECT_TRUE(ValidateConfig(config).ok());
  config.head_dim = 0;
  EXPECT_THAT(ValidateConfig(config).message(), HasSubstr("engram_head_dim"));
  EXPECT_FALSE(ValidateConfig(EngramConfig()).ok());
}

TEST(ConfigTest, TextThatIsNoConfig) {
  std::string twice = Tiny().dump();
  twice.insert(1, R"("dim": 64, )");
  const std::string whole = Tiny().dump();
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("7"), std::string("{"),
        std::string("{\"dim\": \"\xff\"}"), std::string(100000, '['), twice,
        whole + "x", std::string((16U << 20) + 1, ' ')}) {
    ErrorOf(text);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    ErrorOf(whole.substr(0, size));
  }
}

TEST(ConfigTest, LoadNamesTheFile) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "engram_config_test.json")
          .string();
  std::filesystem::remove(path);
  EXPECT_EQ(LoadConfig(path).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(path) << "{}";
  const absl::Status status = LoadConfig(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(path));
  std::filesystem::resize_file(path, (16U << 20) + 1);
  EXPECT_THAT(LoadConfig(path).status().message(),
              HasSubstr("16777217 bytes, the limit is 16777216"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace engram
