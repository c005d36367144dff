#include "engram_client/plan/gather_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace engram {
namespace {

using ::testing::ElementsAre;

struct Input {
  std::vector<std::vector<RowId>> ids;

  GatherPlan Plan(uint64_t partition_rows) const {
    std::vector<LayerGather> layers;
    for (uint32_t i = 0; i < ids.size(); ++i) {
      layers.push_back({LayerId{i}, ids[i], {}});
    }
    return GatherPlan(layers, partition_rows);
  }
};

// Every wanted slot of every layer is served by exactly the row it asked for,
// every row stands once, and the parts are what the rows say.
void ExpectSound(const Input& input, uint64_t partition_rows) {
  const GatherPlan plan = input.Plan(partition_rows);
  std::vector<std::map<RowId, std::vector<uint32_t>>> want(input.ids.size());
  uint64_t total = 0;
  for (size_t layer = 0; layer < input.ids.size(); ++layer) {
    for (uint32_t slot = 0; slot < input.ids[layer].size(); ++slot) {
      want[layer][input.ids[layer][slot]].push_back(slot);
      ++total;
    }
  }
  EXPECT_EQ(plan.row_count(), total);

  uint32_t next = 0;
  std::set<std::pair<uint32_t, PartitionId>> seen;
  for (const GatherPlan::Part& part : plan.parts()) {
    ASSERT_EQ(part.begin, next);
    ASSERT_GT(part.end, part.begin);
    next = part.end;
    ASSERT_TRUE(seen.insert({part.layer_index, part.partition}).second);
    for (uint32_t i = part.begin; i < part.end; ++i) {
      const RowId row = plan.unique_rows()[i];
      ASSERT_EQ(row / partition_rows, ToInt(part.partition));
      auto& layer = want[part.layer_index];
      const auto found = layer.find(row);
      ASSERT_NE(found, layer.end()) << row;
      const auto slots = plan.positions(i);
      ASSERT_EQ(std::vector<uint32_t>(slots.begin(), slots.end()),
                found->second);
      layer.erase(found);
    }
  }
  EXPECT_EQ(next, plan.unique_rows().size());
  for (const auto& layer : want) EXPECT_TRUE(layer.empty());
}

TEST(GatherPlanTest, EmptyGathersHaveNothing) {
  EXPECT_TRUE(GatherPlan({}, 16).parts().empty());
  EXPECT_TRUE((Input{{{}, {}}}.Plan(16).unique_rows().empty()));
}

TEST(GatherPlanTest, DropsDuplicatesAndGroupsByPartition) {
  const GatherPlan plan = Input{{{17, 3, 17, 15, 16, 3}}}.Plan(16);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(3, 15, 16, 17));
  EXPECT_THAT(plan.positions(0), ElementsAre(1, 5));
  EXPECT_THAT(plan.positions(1), ElementsAre(3));
  EXPECT_THAT(plan.positions(2), ElementsAre(4));
  EXPECT_THAT(plan.positions(3), ElementsAre(0, 2));
  ASSERT_EQ(plan.parts().size(), 2u);
  EXPECT_EQ(plan.parts()[0].partition, PartitionId{0});
  EXPECT_EQ(plan.parts()[1].partition, PartitionId{1});
  EXPECT_EQ(plan.row_count(), 6u);
}

TEST(GatherPlanTest, LayersAreKeptApart) {
  // The same row in both layers, also where the first ends.
  const GatherPlan plan = Input{{{5, 9}, {9, 5, 9}}}.Plan(16);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(5, 9, 5, 9));
  EXPECT_THAT(plan.positions(3), ElementsAre(0, 2));
  ASSERT_EQ(plan.parts().size(), 2u);
  EXPECT_EQ(plan.parts()[1].layer_index, 1u);
}

TEST(GatherPlanTest, RowsAtTheEndsOfTheRange) {
  const RowId last = ~RowId{0};
  const GatherPlan plan = Input{{{last, 0, last}}}.Plan(1 << 16);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(0, last));
  EXPECT_EQ(plan.parts()[1].partition, PartitionId{0xFFFF});
  ExpectSound(Input{{{last, 0, last}}}, 1);
}

TEST(GatherPlanTest, RandomGathersAgreeWithANaiveMap) {
  std::mt19937 random(7);
  // Both sides of the switch from comparing to radix sort, dense and sparse.
  for (const size_t rows : {1u, 30u, 1023u, 1024u, 5000u, 20000u}) {
    for (const uint64_t range :
         {uint64_t{1}, uint64_t{300}, uint64_t{384000000}, uint64_t{1} << 32}) {
      std::uniform_int_distribution<uint64_t> id(0, range - 1);
      Input input{{std::vector<RowId>(rows), std::vector<RowId>(rows / 2)}};
      for (auto& layer : input.ids) {
        for (RowId& row : layer) row = static_cast<RowId>(id(random));
      }
      ExpectSound(input, range > 1000000 ? 65536 : 4);
    }
  }
}

}  // namespace
}  // namespace engram
