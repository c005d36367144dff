#include "engram_client/ctl/load_flags.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// The flags, or what the parser says.
absl::StatusOr<LoadFlags> Parse(std::vector<std::string> words) {
  CLI::App app;
  LoadFlags flags;
  AddLoadFlags(app, flags);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return flags;
}

absl::StatusOr<LoadPlan> Plan(std::vector<std::string> words) {
  const absl::StatusOr<LoadFlags> flags = Parse(std::move(words));
  if (!flags.ok()) return flags.status();
  return MakeLoadPlan(*flags);
}

TEST(LoadFlagsTest, GathersByDefault) {
  const LoadPlan plan =
      Plan({"--tables", "h:1,h:2", "--check", "none"}).value();
  EXPECT_THAT(plan.addresses, ElementsAre("h:1", "h:2"));
  EXPECT_FALSE(plan.flags.steps());
  EXPECT_THAT(plan.sizes(), ElementsAre(LoadSize{24, 1}));
  EXPECT_EQ(plan.sample_step, 0);
  EXPECT_EQ(plan.engine.max_in_flight, 256);
  EXPECT_EQ(plan.engine.schedule.arrivals, Arrivals::kPoisson);
  EXPECT_EQ(plan.engine.duration, absl::Seconds(10));
}

TEST(LoadFlagsTest, TablesMayBeMembers) {
  const LoadPlan plan =
      Plan({"--tables", "file:/etc/members", "--check", "none"}).value();
  EXPECT_EQ(plan.members, "file:/etc/members");
  EXPECT_TRUE(plan.addresses.empty());
}

TEST(LoadFlagsTest, EveryFlagIsUnderstood) {
  const LoadPlan plan = Plan({"--tables",
                              "h:1",
                              "--synthetic",
                              "7",
                              "--rows",
                              "24x3,100",
                              "--rate",
                              "2.5",
                              "--arrivals",
                              "even",
                              "--zipf",
                              "0.9",
                              "--layers",
                              "1,14",
                              "--seed",
                              "9",
                              "--duration-seconds",
                              "0.5",
                              "--warmup-seconds",
                              "0",
                              "--deadline-ms",
                              "50",
                              "--max-in-flight",
                              "12",
                              "--threads",
                              "3",
                              "--check-threads",
                              "4",
                              "--check",
                              "sample:8",
                              "--json",
                              "f",
                              "--crc32c",
                              "--poll-threads",
                              "2"})
                            .value();
  EXPECT_EQ(*plan.flags.synthetic, 7);
  EXPECT_EQ(plan.sample_step, 8);
  EXPECT_THAT(plan.layers, ElementsAre(LayerId{1}, LayerId{14}));
  const LoadEngine::Options& engine = plan.engine;
  EXPECT_EQ(engine.schedule.calls_per_second, 2.5);
  EXPECT_EQ(engine.schedule.arrivals, Arrivals::kEven);
  EXPECT_EQ(engine.schedule.seed, 9);
  EXPECT_EQ(engine.warmup, absl::ZeroDuration());
  EXPECT_EQ(engine.duration, absl::Milliseconds(500));
  EXPECT_EQ(engine.deadline, absl::Milliseconds(50));
  EXPECT_EQ(engine.max_in_flight, 12);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(engine.check_threads, 4);
  EXPECT_TRUE(plan.flags.want_crc32c);
}

TEST(LoadFlagsTest, StepsWithTheirOwnDefaults) {
  const LoadPlan plan = Plan({"--worker", "h:1", "--tokens", "1x9,64"}).value();
  EXPECT_TRUE(plan.flags.steps());
  EXPECT_THAT(plan.sizes(), ElementsAre(LoadSize{1, 9}, LoadSize{64, 1}));
  EXPECT_EQ(plan.engine.max_in_flight, 32);
}

TEST(LoadFlagsTest, BadValuesAreNamedWithTheirLimit) {
  const auto error = [](std::vector<std::string> words, auto... texts) {
    EXPECT_THAT(Plan(std::move(words)), IsError(StatusCode::kInvalidArgument,
                                                AllOf(HasSubstr(texts)...)));
  };
  error({}, "--tables", "--workers");
  error({"--tables", "h:1"}, "--check all", "--checkpoint", "--synthetic");
  error({"--tables", "h"}, "--tables", "h");
  error({"--tables", "static:a"}, "--tables", "static:a");
  error({"--tables", "h:1", "--check", "none", "--rows", "0"}, "--rows",
        "\"0\"", "1 to 16777216");
  error({"--tables", "h:1", "--check", "most"}, "--check", "most", "sample:N");
  error({"--workers", "h:1", "--max-in-flight", "2000"}, "2000", "1024");
  error({"--rate", "0"}, "--rate", "0 is no number from 0.001 to 1e+06");
  error({"--rate", "nan"}, "--rate", "nan");
  error({"--zipf", "-1"}, "--zipf", "from 0 to 10");
  error({"--duration-seconds", "100000"}, "--duration-seconds", "86400");
  error({"--deadline-ms", "0"}, "--deadline-ms", "from 1 to 3600000");
  error({"--arrivals", "odd"}, "--arrivals", "odd");
  error({"--layers", "1,x"}, "--layers", "x is no whole number");
}

TEST(LoadFlagsTest, FlagsOfTheOtherKindAreRefused) {
  for (const char* flag :
       {"--rows", "--zipf", "--synthetic", "--poll-threads", "--tables"}) {
    EXPECT_THAT(Parse({"--workers", "h:1", flag, "1"}),
                IsError(StatusCode::kInvalidArgument, HasSubstr(flag)));
  }
  for (const char* flag : {"--tokens", "--inputs"}) {
    EXPECT_THAT(Parse({"--tables", "h:1", flag, "1"}),
                IsError(StatusCode::kInvalidArgument, HasSubstr(flag)));
  }
  EXPECT_THAT(Parse({"--checkpoint", "d", "--synthetic", "1"}),
              IsError(StatusCode::kInvalidArgument, HasSubstr("--checkpoint")));
}

}  // namespace
}  // namespace engram::ctl
