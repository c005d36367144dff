#include "engram_client/ctl/format.h"

#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

TEST(FormatTest, NumbersForPeople) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
}

TEST(FormatTest, TextOfOthersStaysOnItsLine) {
  EXPECT_EQ(Printable("a\n\x1b[2Jb\x7f"), "a  [2Jb ");
  EXPECT_EQ(ShortVersion(""), "-");
  EXPECT_EQ(ShortVersion("0123456789abcdef"), "0123456789ab");
}

TEST(FormatTest, ColumnsAlign) {
  EXPECT_EQ(FormatTable({{"A", "LONG", "X"}, {"\xC3\xA4\xC3\xB6", "b"}}),
            "  A   LONG  X\n"
            "  \xC3\xA4\xC3\xB6  b\n");
}

}  // namespace
}  // namespace engram::ctl
