#include "core/model/row_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace engram {
namespace {

using ::testing::HasSubstr;

TEST(RowFormatTest, SizesOfARow) {
  const RowFormat v41 =
      RowFormat::Create("F8_E4M3", "F8_E8M0", 256, 32).value();
  EXPECT_EQ(v41.code_bytes(), 256U);
  EXPECT_EQ(v41.scale_bytes(), 8U);
  EXPECT_EQ(v41.row_bytes(), 264U);
  const RowFormat other =
      RowFormat::Create("F8_E4M3", "F8_E8M0", 96, 16).value();
  EXPECT_EQ(other.row_bytes(), 102U);
  EXPECT_NE(v41, other);
  EXPECT_TRUE(RowFormat::Create("F8_E4M3", "F8_E8M0", 1, 1).ok());
  EXPECT_TRUE(RowFormat::Create("F8_E4M3", "F8_E8M0", 1 << 19, 1).ok());
}

struct BadFormat {
  const char* code_dtype;
  const char* scale_dtype;
  uint64_t width;
  uint64_t block_size;
  const char* message;
};

TEST(RowFormatTest, WhatThisBuildCannotDecodeIsNamed) {
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  const BadFormat cases[] = {
      {"BF16", "F8_E8M0", 256, 32, "codes of BF16"},
      {"", "F8_E8M0", 256, 32, "codes of "},
      {"F8_E4M3", "F32", 256, 32, "scales of F32"},
      {"F8_E4M3", "F8_E8M0", 0, 32, "width 0"},
      {"F8_E4M3", "F8_E8M0", 256, 0, "block size 0"},
      {"F8_E4M3", "F8_E8M0", 256, 48,
       "block size 48 does not divide width 256"},
      {"F8_E4M3", "F8_E8M0", 256, kHuge, "block size"},
      {"F8_E4M3", "F8_E8M0", kHuge, kHuge, "width"},
      {"F8_E4M3", "F8_E8M0", 1 << 20, 32, "a row of 1081344 bytes"},
      {"F8_E4M3", "F8_E8M0", (1 << 19) + 1, 1, "the limit is 1048576"},
  };
  for (const BadFormat& bad : cases) {
    const absl::Status status =
        RowFormat::Create(bad.code_dtype, bad.scale_dtype, bad.width,
                          bad.block_size)
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace engram
