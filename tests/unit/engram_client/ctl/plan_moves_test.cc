#include "engram_client/ctl/plan_moves.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::HasSubstr;

constexpr uint64_t kRowBytes = 33;

// 1,000 partitions of 16 rows in layer 1, the last of one row; 7 in layer 14.
TableInfo Table() {
  TableInfo table;
  table.version = "v";
  table.row_format.width = 32;
  table.partition_rows = 16;
  table.layers = {{LayerId{1}, 16 * 999 + 1, 1000}, {LayerId{14}, 112, 7}};
  return table;
}

std::vector<PlacementMember> Members(const std::vector<std::string>& names) {
  std::vector<PlacementMember> members;
  for (const std::string& name : names) members.push_back({name});
  return members;
}

MovePlan Plan(const Ownership& now, const Ownership& then) {
  absl::StatusOr<MovePlan> plan = PlanMoves(Table(), "engram", now, then);
  EXPECT_THAT(plan, IsOk());
  return *std::move(plan);
}

PartitionSum Sum(const MovePlan& plan, PartitionSum MemberMoves::*of) {
  PartitionSum sum;
  for (const MemberMoves& member : plan.members) {
    sum.partitions += (member.*of).partitions;
    sum.bytes += (member.*of).bytes;
  }
  return sum;
}

TEST(PlanMovesTest, WhoJoinsReceivesAndOthersGiveUp) {
  const MovePlan plan =
      Plan({Members({"b", "a"}), 1}, {Members({"a", "b", "c"}), 1});
  EXPECT_EQ(plan.table.partitions, 1007U);
  EXPECT_EQ(plan.table.bytes, (16 * 999 + 1 + 112) * kRowBytes);
  ASSERT_EQ(plan.members.size(), 3U);
  const MemberMoves& a = plan.members[0];
  const MemberMoves& c = plan.members[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_TRUE(a.now.is_member && a.then.is_member);
  EXPECT_EQ(a.now.owned.partitions + a.to_receive.partitions -
                a.to_give_up.partitions,
            a.then.owned.partitions);
  EXPECT_EQ(a.now.owned.bytes + a.to_receive.bytes - a.to_give_up.bytes,
            a.then.owned.bytes);
  EXPECT_EQ(a.peak_bytes(), a.now.owned.bytes + a.to_receive.bytes);
  EXPECT_NEAR(a.now.share, 503.5, 0.01);
  EXPECT_FALSE(c.now.is_member);
  EXPECT_EQ(c.now.of_share(), 0);
  EXPECT_EQ(c.to_receive, c.then.owned);
  EXPECT_NEAR(c.then.of_share(), 1, 0.05);
  EXPECT_EQ(plan.moved, Sum(plan, &MemberMoves::to_receive));
  EXPECT_EQ(plan.moved, Sum(plan, &MemberMoves::to_give_up));
}

TEST(PlanMovesTest, WhoLeavesGivesUpAll) {
  const MovePlan plan =
      Plan({Members({"a", "b", "c"}), 2}, {Members({"a", "c"}), 2});
  const MemberMoves& b = plan.members[1];
  EXPECT_TRUE(b.now.is_member);
  EXPECT_FALSE(b.then.is_member);
  EXPECT_EQ(b.to_give_up, b.now.owned);
  // Two members of two replicas hold all of it, so nothing else can move.
  EXPECT_EQ(plan.moved, b.now.owned);
  EXPECT_EQ(plan.least, plan.moved);
  EXPECT_EQ(plan.members[0].then.owned, plan.table);
}

TEST(PlanMovesTest, NothingMovesWithoutAChange) {
  const Ownership same = {Members({"a", "b", "c"}), 2};
  const MovePlan plan = Plan(same, same);
  EXPECT_EQ(plan.moved, PartitionSum{});
  EXPECT_EQ(plan.least, PartitionSum{});
}

TEST(PlanMovesTest, MoreReplicasAreLoaded) {
  const MovePlan plan =
      Plan({Members({"a", "b", "c"}), 1}, {Members({"a", "b", "c"}), 2});
  EXPECT_EQ(plan.replicas_now, 1U);
  EXPECT_EQ(plan.replicas_then, 2U);
  EXPECT_EQ(
      plan.moved.partitions - Sum(plan, &MemberMoves::to_give_up).partitions,
      plan.table.partitions);
  EXPECT_GE(plan.moved.partitions, plan.least.partitions);
}

// What is counted is what servers find out for themselves.
TEST(PlanMovesTest, CountsAreThoseOfThePlacement) {
  const auto owned_by = [](const std::vector<std::string>& names,
                           const std::string& name) {
    const auto placement =
        Placement::Create({.table = "engram",
                           .layers = {{LayerId{1}, 1000}, {LayerId{14}, 7}},
                           .members = Members(names),
                           .replicas = 2});
    const auto owned = placement->OwnedBy(name);
    return std::set<PartitionRef>(owned->begin(), owned->end());
  };
  const std::vector<std::string> now = {"a", "b", "c"};
  const std::vector<std::string> then = {"a", "b", "c", "d"};
  const MovePlan plan = Plan({Members(now), 2}, {Members(then), 2});
  const std::set<PartitionRef> before = owned_by(now, "b");
  const std::set<PartitionRef> after = owned_by(then, "b");
  const MemberMoves& b = plan.members[1];
  EXPECT_EQ(b.now.owned.partitions, before.size());
  EXPECT_EQ(b.then.owned.partitions, after.size());
  EXPECT_EQ(b.to_give_up.partitions,
            std::count_if(before.begin(), before.end(), [&](const auto& ref) {
              return !after.contains(ref);
            }));
}

TEST(PlanMovesTest, LittleMoreThanTheLeastMoves) {
  std::vector<std::string> names = {"t0", "t1"};
  for (const uint32_t replicas : {1U, 2U}) {
    for (int i = 2; i < 8; ++i) {
      const std::vector<std::string> now = names;
      names.push_back(absl::StrCat("t", i));
      for (const MovePlan& plan :
           {Plan({Members(now), replicas}, {Members(names), replicas}),
            Plan({Members(names), replicas}, {Members(now), replicas})}) {
        EXPECT_GE(plan.moved.bytes, plan.least.bytes);
        EXPECT_LE(static_cast<double>(plan.moved.bytes),
                  1.15 * static_cast<double>(plan.least.bytes))
            << i << " replicas " << replicas;
      }
    }
    names.resize(2);
  }
}

TEST(PlanMovesTest, FullestIsByShare) {
  const std::vector<PlacementMember> members = {{"a", 1}, {"b", 4}, {"c", 1}};
  const MovePlan plan = Plan({members, 2}, {members, 2});
  // b gets one whole copy, not its 4/3; the others share the second one.
  EXPECT_NEAR(plan.members[1].now.share, 1007, 0.01);
  EXPECT_NEAR(plan.members[0].now.share, 503.5, 0.01);
  const MemberMoves* fullest = Fullest(plan, &MemberMoves::then);
  ASSERT_NE(fullest, nullptr);
  for (const MemberMoves& member : plan.members) {
    EXPECT_LE(member.then.of_share(), fullest->then.of_share());
  }
  EXPECT_EQ(Fullest({}, &MemberMoves::now), nullptr);
}

TEST(PlanMovesTest, SaysWhichEndIsWrong) {
  EXPECT_THAT(PlanMoves(Table(), "engram", {{}, 1}, {Members({"a"}), 1}),
              IsError(StatusCode::kInvalidArgument, HasSubstr("members now")));
  EXPECT_THAT(PlanMoves(Table(), "engram", {Members({"a"}), 1},
                        {Members({"a", "a"}), 1}),
              IsError(StatusCode::kInvalidArgument, HasSubstr("members then")));
}

}  // namespace
}  // namespace engram::ctl
