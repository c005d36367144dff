#include "engram_client/plan/call_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kPartitionRows = 16;
using Parts = std::vector<GatherPlan::Part>;

std::vector<LayerGather> Layers(const std::vector<std::vector<RowId>>& ids) {
  std::vector<LayerGather> layers;
  for (uint32_t i = 0; i < ids.size(); ++i) {
    layers.push_back({LayerId{i}, ids[i], {}});
  }
  return layers;
}

TEST(CallRowsTest, AsksInTheOrderOfTheFirstSlots) {
  const std::vector<std::vector<RowId>> ids = {{31, 9, 7, 30, 9, 31}};
  const GatherPlan plan(Layers(ids), kPartitionRows);
  const std::vector<CallRows> calls = CallRows::Order(plan, {plan.parts()});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_THAT(calls[0].row_ids(), ElementsAre(31, 9, 7, 30));
  EXPECT_THAT(calls[0].first_slots(), ElementsAre(0, 1, 2, 3));
}

TEST(CallRowsTest, EachCallHasItsPartsWhateverTheirOrder) {
  const std::vector<std::vector<RowId>> ids = {{40, 1, 20, 2, 41}, {50, 3}};
  const GatherPlan plan(Layers(ids), kPartitionRows);
  ASSERT_EQ(plan.parts().size(), 5U);  // 1-2, 20, 40-41; 3, 50
  const Parts first = {plan.parts()[4], plan.parts()[2], plan.parts()[0]};
  const Parts second = {plan.parts()[3]};
  const std::vector<CallRows> calls =
      CallRows::Order(plan, {absl::MakeConstSpan(first), second, {}});
  EXPECT_THAT(calls[0].row_ids(), ElementsAre(40, 1, 2, 41, 50));
  EXPECT_THAT(calls[0].first_slots(), ElementsAre(0, 1, 3, 4, 0));
  ASSERT_EQ(calls[0].runs().size(), 2U);
  EXPECT_EQ(calls[0].runs()[0].layer_index, 0U);
  EXPECT_EQ(calls[0].runs()[0].end, 4U);
  EXPECT_EQ(calls[0].runs()[1].layer_index, 1U);
  EXPECT_EQ(calls[0].runs()[1].begin, 4U);
  EXPECT_EQ(calls[0].runs()[1].end, 5U);
  EXPECT_THAT(calls[1].row_ids(), ElementsAre(3));
  EXPECT_THAT(calls[1].first_slots(), ElementsAre(1));
  EXPECT_EQ(calls[2].row_count(), 0U);
  EXPECT_THAT(calls[2].runs(), IsEmpty());
}

TEST(CallRowsTest, NoCallsOfNoRows) {
  const GatherPlan plan({}, kPartitionRows);
  EXPECT_THAT(CallRows::Order(plan, {}), IsEmpty());
}

TEST(CallRowsTest, PiecesOfPartsOfManyRows) {
  std::mt19937 random(5);
  std::vector<std::vector<RowId>> ids(2);
  for (auto& layer : ids) {
    layer.resize(3000);
    for (RowId& id : layer) id = random() % 2000;
  }
  const GatherPlan plan(Layers(ids), kPartitionRows);
  std::vector<Parts> parts(3);
  for (GatherPlan::Part part : plan.parts()) {
    const uint32_t middle = part.begin + part.rows() / 2;
    Parts& call = parts[random() % 2];
    if (middle > part.begin) {
      call.push_back({part.layer_index, part.partition, part.begin, middle});
    }
    parts[2].push_back({part.layer_index, part.partition, middle, part.end});
  }
  const std::vector<CallRows> calls = CallRows::Order(
      plan, {absl::MakeConstSpan(parts[0]), parts[1], parts[2]});
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (const CallRows& call : calls) {
    for (const CallRows::Run& run : call.runs()) {
      const auto slots =
          call.first_slots().subspan(run.begin, run.end - run.begin);
      EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end()));
      for (uint32_t row = run.begin; row < run.end; ++row) {
        const uint32_t slot = call.first_slots()[row];
        ASSERT_EQ(ids[run.layer_index][slot], call.row_ids()[row]);
        EXPECT_TRUE(seen.insert({run.layer_index, slot}).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), plan.unique_rows().size());
}

// A few rows of a large plan are ordered by themselves, with the same result.
TEST(CallRowsTest, AFewRowsOfALargePlan) {
  std::mt19937 random(9);
  std::vector<std::vector<RowId>> ids(2);
  for (auto& layer : ids) {
    layer.resize(5000);
    for (RowId& id : layer) id = random() % 100000;
  }
  const GatherPlan plan(Layers(ids), kPartitionRows);
  Parts few;
  for (size_t i = 0; i < plan.parts().size(); i += 97) {
    few.push_back(plan.parts()[i]);
  }
  std::shuffle(few.begin(), few.end(), random);
  Parts rest;
  for (size_t i = 0; i < plan.parts().size(); ++i) {
    if (i % 97 != 0) rest.push_back(plan.parts()[i]);
  }
  const CallRows alone = std::move(CallRows::Order(plan, {few}).front());
  const CallRows among = std::move(CallRows::Order(plan, {few, rest}).front());
  EXPECT_EQ(alone.row_ids(), among.row_ids());
  EXPECT_EQ(alone.first_slots(), among.first_slots());
  ASSERT_EQ(alone.runs().size(), 2U);
  ASSERT_EQ(among.runs().size(), 2U);
  EXPECT_EQ(alone.runs()[1].begin, among.runs()[1].begin);
  EXPECT_GT(alone.row_count(), 50U);
}

}  // namespace
}  // namespace engram
