#include "core/model/token_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/model/presets.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenMapTest : public ::testing::Test {
 protected:
  std::string ErrorOf(std::vector<int32_t> map) const {
    const absl::Status status =
        TokenMap::Create(std::move(map), config_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const EngramConfig config_ = PresetConfig("odd").value();  // 300 -> 123
  std::vector<int32_t> map_ = MadeUpTokenMap(config_);
};

TEST_F(TokenMapTest, KeepsTheIdsAndMapsThePad) {
  const absl::StatusOr<TokenMap> map = TokenMap::Create(map_, config_);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ids(), absl::MakeConstSpan(map_));
  EXPECT_EQ(map->pad(), (5 * 7919 + 13) % 123);
}

TEST_F(TokenMapTest, RefusesAnotherSize) {
  map_.pop_back();
  EXPECT_THAT(ErrorOf(map_), HasSubstr("299 entries, vocab_size is 300"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("0 entries"));
}

TEST_F(TokenMapTest, RefusesIdsOutOfRange) {
  map_[7] = 123;
  EXPECT_THAT(ErrorOf(map_),
              HasSubstr("token 7 maps to 123, engram_compressed_vocab_size is "
                        "123"));
  map_[7] = -1;
  EXPECT_THAT(ErrorOf(map_), HasSubstr("token 7 maps to -1"));
}

// The map of a smaller compressed vocabulary fits, but all multipliers would
// be wrong.
TEST_F(TokenMapTest, RefusesAMapOfAnotherCompressedSize) {
  for (int32_t& id : map_) id %= 122;
  EXPECT_THAT(ErrorOf(map_), HasSubstr("no token maps to 122"));
}

TEST_F(TokenMapTest, LoadReadsLittleEndianAndNamesTheFile) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "engram_token_map_test")
          .string();
  std::ofstream file(path, std::ios::binary);
  for (const int32_t id : map_) {
    const char bytes[] = {static_cast<char>(id), static_cast<char>(id >> 8), 0,
                          0};
    file.write(bytes, sizeof(bytes));
  }
  file.close();
  const absl::StatusOr<TokenMap> map = TokenMap::Load(path, config_);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ids(), absl::MakeConstSpan(map_));

  EngramConfig other = config_;
  other.compressed_vocab_size = 124;
  EXPECT_THAT(TokenMap::Load(path, other).status().message(),
              AllOf(HasSubstr(path), HasSubstr("no token maps to 123")));

  std::filesystem::resize_file(path, 1199);
  EXPECT_THAT(TokenMap::Load(path, config_).status().message(),
              AllOf(HasSubstr(path), HasSubstr("1199 bytes"),
                    HasSubstr("vocab_size 300 has 1200")));
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(TokenMap::Load(path, config_).status().code(),
            absl::StatusCode::kInvalidArgument);
  std::filesystem::remove(path);
  EXPECT_EQ(TokenMap::Load(path, config_).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace engram
