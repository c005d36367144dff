#include "engram_client/plan/gather_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
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

// All slots that want a unique row, in the order of the plan.
std::vector<uint32_t> SlotsOf(const GatherPlan& plan, uint32_t layer_index,
                              uint32_t row) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = plan.first_slots()[row]; slot != GatherPlan::kNoSlot;
       slot = plan.next_slots(layer_index)[slot]) {
    slots.push_back(slot);
  }
  return slots;
}

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

  for (const GatherPlan::Layer& layer : plan.layers()) {
    const auto slots =
        plan.first_slots().subspan(layer.begin, layer.end - layer.begin);
    ASSERT_TRUE(std::is_sorted(slots.begin(), slots.end()));
  }
  uint32_t next = 0;
  std::pair<uint32_t, PartitionId> last;
  for (const GatherPlan::Part& part : plan.parts()) {
    ASSERT_EQ(part.begin, next);
    ASSERT_GT(part.end, part.begin);
    const std::pair<uint32_t, PartitionId> key(part.layer_index,
                                               part.partition);
    ASSERT_TRUE(next == 0 || last < key);
    next = part.end;
    last = key;
    for (uint32_t i = part.begin; i < part.end; ++i) {
      const uint32_t index = plan.by_partition()[i];
      ASSERT_TRUE(i == part.begin || plan.by_partition()[i - 1] < index);
      const RowId row = plan.unique_rows()[index];
      ASSERT_EQ(row / partition_rows, ToInt(part.partition));
      auto& layer = want[part.layer_index];
      const auto found = layer.find(row);
      ASSERT_NE(found, layer.end()) << row;
      ASSERT_EQ(SlotsOf(plan, part.layer_index, index), found->second);
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
  EXPECT_THAT(plan.unique_rows(), ElementsAre(17, 3, 15, 16));
  EXPECT_THAT(plan.by_partition(), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(SlotsOf(plan, 0, 0), ElementsAre(0, 2));
  EXPECT_THAT(SlotsOf(plan, 0, 1), ElementsAre(1, 5));
  EXPECT_THAT(SlotsOf(plan, 0, 2), ElementsAre(3));
  EXPECT_THAT(SlotsOf(plan, 0, 3), ElementsAre(4));
  ASSERT_EQ(plan.parts().size(), 2u);
  EXPECT_EQ(plan.parts()[0].partition, PartitionId{0});
  EXPECT_EQ(plan.parts()[0].rows(), 2u);
  EXPECT_EQ(plan.parts()[1].partition, PartitionId{1});
  EXPECT_EQ(plan.row_count(), 6u);
}

TEST(GatherPlanTest, LayersAreKeptApart) {
  // The same row in both layers, also where the first ends.
  const GatherPlan plan = Input{{{5, 9}, {9, 5, 9}}}.Plan(16);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(5, 9, 9, 5));
  EXPECT_THAT(SlotsOf(plan, 1, 2), ElementsAre(0, 2));
  ASSERT_EQ(plan.parts().size(), 2u);
  EXPECT_EQ(plan.parts()[1].layer_index, 1u);
}

TEST(GatherPlanTest, RowsAtTheEndsOfTheRange) {
  const RowId last = ~RowId{0};
  const GatherPlan plan = Input{{{last, 0, last}}}.Plan(1 << 16);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(last, 0));
  EXPECT_EQ(plan.parts()[1].partition, PartitionId{0xFFFF});
  ExpectSound(Input{{{last, 0, last}}}, 1);
}

TEST(GatherPlanTest, OneRow) {
  const GatherPlan plan = Input{{{70000}}}.Plan(65536);
  EXPECT_THAT(plan.unique_rows(), ElementsAre(70000));
  EXPECT_THAT(SlotsOf(plan, 0, 0), ElementsAre(0));
  ASSERT_EQ(plan.parts().size(), 1u);
  EXPECT_EQ(plan.parts()[0].partition, PartitionId{1});
  EXPECT_EQ(plan.parts()[0].rows(), 1u);
}

TEST(GatherPlanTest, EqualRowsAreOne) {
  for (const size_t rows : {2u, 64u, 65u, 5000u}) {
    const Input input{{std::vector<RowId>(rows, ~RowId{0} - 1)}};
    ExpectSound(input, 65536);
    EXPECT_EQ(input.Plan(65536).unique_rows().size(), 1u);
  }
}

TEST(GatherPlanTest, APartitionOfMoreRowsThanAnIdHas) {
  const GatherPlan plan = Input{{{~RowId{0}, 0}}}.Plan(uint64_t{1} << 40);
  ASSERT_EQ(plan.parts().size(), 1u);
  EXPECT_EQ(plan.parts()[0].rows(), 2u);
}

TEST(GatherPlanTest, ManyLayersOfDifferentSizes) {
  std::mt19937 random(3);
  Input input;
  for (const size_t rows : {0u, 1u, 500u, 0u, 64u, 2000u, 3u, 65u, 0u}) {
    std::vector<RowId>& layer = input.ids.emplace_back(rows);
    for (RowId& row : layer) row = static_cast<RowId>(random() % 3000);
  }
  ExpectSound(input, 16);
}

// Ids that differ in some bits only: sorting leaves the others out.
TEST(GatherPlanTest, IdsThatDifferInFewBits) {
  std::mt19937 random(11);
  for (const RowId bits :
       {0x00000001u, 0x80000000u, 0x80000001u, 0x00FFF000u, 0xFF0000FFu,
        0x0000F00Fu, 0x88888888u, 0xFFFFFFFFu}) {
    for (const size_t rows : {65u, 300u, 3000u}) {
      Input input{{std::vector<RowId>(rows)}};
      for (RowId& row : input.ids[0]) {
        row = (static_cast<RowId>(random()) & bits) | (0x12345678u & ~bits);
      }
      ExpectSound(input, 65536);
    }
  }
}

TEST(GatherPlanTest, RandomGathersAgreeWithANaiveMap) {
  std::mt19937 random(7);
  // Both sides of the switch from ranks to digits, dense and sparse.
  for (const size_t rows : {1u, 30u, 64u, 65u, 128u, 1024u, 5000u, 20000u}) {
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

TEST(GatherPlanTest, WhatIsLeftOutIsInNoPart) {
  const Input input = {{{31, 9, 17, 30, 9, 31}, {9, 100}}};
  GatherPlan plan = input.Plan(16);
  // Unique rows: 31 9 17 30 | 9 100.
  plan.LeaveOut({true, false, false, true, true, false});
  ASSERT_EQ(plan.parts().size(), 3u);
  std::vector<RowId> asked;
  uint32_t next = 0;
  for (const GatherPlan::Part& part : plan.parts()) {
    EXPECT_EQ(part.begin, next);
    next = part.end;
    for (uint32_t i = part.begin; i < part.end; ++i) {
      const RowId row = plan.unique_rows()[plan.by_partition()[i]];
      EXPECT_EQ(row / 16, ToInt(part.partition));
      asked.push_back(row);
    }
  }
  EXPECT_EQ(next, plan.by_partition().size());
  EXPECT_THAT(asked, ElementsAre(9, 17, 100));
  EXPECT_EQ(plan.parts()[2].layer_index, 1u);
  EXPECT_EQ(plan.unique_rows().size(), 6u);
}

}  // namespace
}  // namespace engram
