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

TEST(FormatTest, FewNamesOfMany) {
  EXPECT_EQ(JoinNames({}), "");
  EXPECT_EQ(JoinNames({"a", "b\n"}), "a, b ");
  EXPECT_EQ(JoinNames(std::vector<std::string>(9, "n")),
            "n, n, n, n, n, n, n, n and 1 other");
  EXPECT_EQ(JoinNames(std::vector<std::string>(20, "n")),
            "n, n, n, n, n, n, n, n and 12 others");
}

TEST(FormatTest, TimesToWait) {
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(1200)), "2 s");
  EXPECT_EQ(ShortDuration(absl::Seconds(120)), "120 s");
  EXPECT_EQ(ShortDuration(absl::Seconds(121)), "3 min");
  EXPECT_EQ(ShortDuration(absl::Hours(3.5)), "3.5 h");
}

TEST(FormatTest, ColumnsAlign) {
  EXPECT_EQ(FormatTable({{"A", "LONG", "X"}, {"\xC3\xA4\xC3\xB6", "b"}}),
            "  A   LONG  X\n"
            "  \xC3\xA4\xC3\xB6  b\n");
}

}  // namespace
}  // namespace engram::ctl
