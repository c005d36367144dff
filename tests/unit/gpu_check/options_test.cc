#include "tests/gpu/check/options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::gpu_check {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options Parse(const std::string& arguments) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  app.parse(arguments);
  return options;
}

TEST(OptionsTest, Defaults) {
  const Options options = Parse("");
  EXPECT_FALSE(options.list);
  EXPECT_FALSE(options.quick);
  EXPECT_EQ(options.device, 0);
  EXPECT_EQ(options.time_limit_seconds, 200U);
}

TEST(OptionsTest, AllFlags) {
  const Options options = Parse(
      "--quick --device 1 --only gather --only gate --data d --v41-mini m "
      "--json j --fact driver=580.1 --fact a=b=c --seed 7 "
      "--time-limit-seconds 9");
  EXPECT_TRUE(options.quick);
  EXPECT_EQ(options.device, 1);
  EXPECT_THAT(options.only, ElementsAre("gather", "gate"));
  EXPECT_EQ(options.data_dir, "d");
  EXPECT_EQ(options.v41_mini_dir, "m");
  EXPECT_EQ(options.json_path, "j");
  EXPECT_THAT(options.facts, ElementsAre("driver=580.1", "a=b=c"));
  EXPECT_EQ(SeedOf(options), 7U);
  EXPECT_EQ(options.time_limit_seconds, 9U);
}

TEST(OptionsTest, RefusesWhatIsNoNumber) {
  EXPECT_THROW(Parse("--device -1"), CLI::ParseError);
  EXPECT_THROW(Parse("--seed x"), CLI::ParseError);
  EXPECT_THROW(Parse("--time-limit-seconds 0"), CLI::ParseError);
  EXPECT_THROW(Parse("--fact driver"), CLI::ParseError);
  EXPECT_THROW(Parse("--fact =1"), CLI::ParseError);
  EXPECT_THROW(Parse("--unknown"), CLI::ParseError);
}

TEST(OptionsTest, ChoosesByPartsOfNames) {
  const std::vector<std::string> names = {"gather", "gather-pinned", "gate"};
  EXPECT_THAT(*Choose({}, names), ElementsAre(true, true, true));
  EXPECT_THAT(*Choose({"pinned", "gate"}, names),
              ElementsAre(false, true, true));
  EXPECT_THAT(*Choose({"ga"}, names), ElementsAre(true, true, true));
}

TEST(OptionsTest, APatternThatChoosesNothingIsAnError) {
  EXPECT_THAT(
      Choose({"gate", "wkv"}, {"gather", "gate"}),
      test::IsError(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("wkv"), HasSubstr("gather, gate"))));
}

}  // namespace
}  // namespace engram::gpu_check
