#include "core/base/flag_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace engram {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WholeNumberTest, TakesDecimalDigitsWithinTheLimits) {
  const CLI::Validator check = WholeNumber(1, 4294967295);
  for (std::string text : {"1", "14", "4294967295"}) {
    EXPECT_THAT(check(text), IsEmpty()) << text;
  }
}

TEST(WholeNumberTest, RefusesWhatTheConversionWouldTakeForAnotherNumber) {
  const CLI::Validator check = WholeNumber(0, UINT64_MAX);
  for (std::string text : {"014", "-1", "+1", "0x10", "1e3", "1.0", "", " 1",
                           "99999999999999999999999"}) {
    EXPECT_THAT(check(text), HasSubstr("is no whole number")) << text;
  }
}

TEST(WholeNumberTest, NamesValueAndLimits) {
  std::string text = "0";
  EXPECT_EQ(WholeNumber(1, 9)(text), "0 is no whole number from 1 to 9");
}

TEST(SecondsTest, RefusesWhatIsNoTime) {
  const CLI::Validator check = Seconds(0.001, 86400);
  std::string good = "0.5";
  EXPECT_THAT(check(good), IsEmpty());
  for (std::string text : {"nan", "inf", "-1", "0", "86401", "soon"}) {
    EXPECT_THAT(check(text), HasSubstr("seconds from 0.001 to 86400")) << text;
  }
}

}  // namespace
}  // namespace engram
