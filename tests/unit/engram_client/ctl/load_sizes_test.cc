#include "engram_client/ctl/load_sizes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseLoadSizesTest, OneSizeOrAMix) {
  EXPECT_THAT(*ParseLoadSizes("--rows", "24", 100),
              ElementsAre(LoadSize{24, 1}));
  const auto mix = ParseLoadSizes("--rows", "24x70,1536x25,49152x5", 49152);
  EXPECT_THAT(*mix, ElementsAre(LoadSize{24, 70}, LoadSize{1536, 25},
                                LoadSize{49152, 5}));
  EXPECT_EQ(LargestSize(*mix), 49152);
  EXPECT_THAT(*ParseLoadSizes("--rows", "7,9x2", 10),
              ElementsAre(LoadSize{7, 1}, LoadSize{9, 2}));
}

TEST(ParseLoadSizesTest, WhatIsNoneIsNamed) {
  for (const char* text : {"", "x", "24x", "x3", "24x3x4", "24,", "-1", "+24",
                           " 24", "24.5", "0x18", "99999999999999999999"}) {
    const std::string item = absl::StrCat(
        "--rows has \"", text[0] == '2' && text[2] == ',' ? "" : text);
    EXPECT_THAT(ParseLoadSizes("--rows", text, 100),
                IsError(StatusCode::kInvalidArgument, HasSubstr(item)))
        << text;
  }
}

TEST(ParseLoadSizesTest, LimitsAreNamed) {
  const auto error = [](const char* text, const char* value,
                        const char* limit) {
    EXPECT_THAT(ParseLoadSizes("--tokens", text, 512),
                IsError(StatusCode::kInvalidArgument,
                        AllOf(HasSubstr("--tokens"), HasSubstr(value),
                              HasSubstr(limit))));
  };
  error("513", "513", "1 to 512");
  error("0", "0", "1 to 512");
  error("3x0", "weight is 0", "1 to 1000000");
  error("3x1000001", "weight is 1000001", "1 to 1000000");
  error("3x1,4,3x9", "size 3", "twice");
  error("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "17 sizes", "is 16");
}

}  // namespace
}  // namespace engram::ctl
