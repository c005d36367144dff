#include "table_server/membership/departures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeparturesTest, TheLatestOfANameCounts) {
  Departures departures;
  departures.Add({"b", 5});
  departures.Add({"a", 7});
  departures.Add({"b", 4});
  EXPECT_THAT(departures.All(),
              ElementsAre(MemberDeparture{"a", 7}, MemberDeparture{"b", 5}));
  departures.Add({"b", 6});
  EXPECT_TRUE(departures.HasLeft("b", 6));
  EXPECT_FALSE(departures.HasLeft("b", 7));
  EXPECT_FALSE(departures.HasLeft("c", 1));
}

TEST(DeparturesTest, ALaterInstanceEndsIt) {
  Departures departures;
  departures.Add({"a", 7});
  departures.Returned("a", 7);
  departures.Returned("b", 9);
  EXPECT_THAT(departures.All(), ElementsAre(MemberDeparture{"a", 7}));
  departures.Returned("a", 8);
  EXPECT_THAT(departures.All(), IsEmpty());
}

TEST(DeparturesTest, WhatNoServerCanBeIsIgnored) {
  Departures departures;
  departures.Add({"a", 0});
  departures.Add({"", 1});
  departures.Add({"a b", 1});
  departures.Add({std::string(254, 'x'), 1});
  EXPECT_THAT(departures.All(), IsEmpty());
}

TEST(DeparturesTest, KeepsTheLatest) {
  Departures departures;
  for (size_t i = 1; i <= Departures::kMax + 10; ++i) {
    departures.Add({absl::StrCat("t", i), i});
  }
  departures.Trim();
  EXPECT_EQ(departures.All().size(), Departures::kMax);
  EXPECT_FALSE(departures.HasLeft("t10", 10));
  EXPECT_TRUE(departures.HasLeft("t11", 11));
  EXPECT_TRUE(departures.HasLeft(absl::StrCat("t", Departures::kMax + 10), 1));
}

}  // namespace
}  // namespace engram
