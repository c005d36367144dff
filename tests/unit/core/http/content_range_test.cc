#include "core/http/content_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

TEST(ContentRangeTest, ReadsWhatServersSend) {
  const auto range = ParseContentRange("bytes 8-15/100");
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(*range, (ContentRange{{8, 16}, 100}));
  EXPECT_EQ(range->range.size(), 8U);
  EXPECT_EQ(*ParseContentRange(" Bytes 0-0/1 "), (ContentRange{{0, 1}, 1}));
  EXPECT_EQ(
      *ParseContentRange("bytes 18446744073709551613-18446744073709551614/"
                         "18446744073709551615"),
      (ContentRange{{18446744073709551613U, 18446744073709551615U},
                    18446744073709551615U}));
}

TEST(ContentRangeTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 0-7", "bytes 0-7/", "bytes 0-7/*",
        "bytes */100", "bytes 7-0/100", "bytes 0-100/100", "bytes -7/100",
        "bytes 0-/100", "bytes 0-7/100x", "bytes 0-7/100,0-1/3", "0-7/100",
        "rows 0-7/100", "bytes +0-7/100", "bytes 0-7/ 100",
        "bytes 0-7/18446744073709551616"}) {
    EXPECT_THAT(ParseContentRange(text),
                IsError(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

}  // namespace
}  // namespace engram
