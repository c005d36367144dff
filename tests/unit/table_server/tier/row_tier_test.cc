#include "table_server/tier/row_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "table_server/tier/fake_row_tier.h"
#include "table_server/tier/host_tier.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"
#include "tests/unit/table_server/tier/row_tier_contract.h"

namespace engram {
namespace {

using ::engram::test::AllPartitions;
using ::engram::test::IsOk;
using ::engram::test::SyntheticRows;

std::unique_ptr<HostTier> EmptyHostTier(
    const Manifest& manifest, const std::vector<int>& numa_nodes = {}) {
  auto tier = HostTier::Create(manifest, numa_nodes);
  EXPECT_THAT(tier, IsOk());
  return *std::move(tier);
}

// Allocates `refs` and fills them with the rows that a synthetic tier computes.
void Fill(const Manifest& manifest, const std::vector<PartitionRef>& refs,
          HostTier& tier) {
  for (const PartitionRef& ref : refs) {
    const size_t index = *manifest.IndexOf(ref.layer);
    const auto bytes = tier.Allocate(index, ref.partition);
    ASSERT_THAT(bytes, IsOk());
    EXPECT_EQ(bytes->size(), manifest.RowsIn(index, ref.partition) *
                                 manifest.row_format().row_bytes());
    EXPECT_EQ(tier.MutablePartition(index, ref.partition), *bytes);
    test::FillWithSyntheticRows(manifest, ref, *bytes);
  }
}

std::unique_ptr<RowTier> FilledHostTier(
    const Manifest& manifest, const std::vector<int>& numa_nodes = {}) {
  std::unique_ptr<HostTier> tier = EmptyHostTier(manifest, numa_nodes);
  Fill(manifest, AllPartitions(manifest), *tier);
  return tier;
}

// Every partition lies in the memory of another that was there before.
std::unique_ptr<RowTier> RefilledHostTier(const Manifest& manifest) {
  std::unique_ptr<HostTier> tier = EmptyHostTier(manifest);
  std::vector<PartitionRef> refs = AllPartitions(manifest);
  std::mt19937 random(3);
  for (int round = 0; round < 3; ++round) {
    std::shuffle(refs.begin(), refs.end(), random);
    for (const PartitionRef& ref : refs) {
      if (round == 0) continue;
      const size_t index = *manifest.IndexOf(ref.layer);
      tier->Free(index, ref.partition);
    }
    EXPECT_EQ(tier->memory_bytes(), 0U);
    std::shuffle(refs.begin(), refs.end(), random);
    Fill(manifest, refs, *tier);
  }
  return tier;
}

using test::RowTierContract;
using test::TierCase;

// Every row of odd partitions has to be fetched.
struct FakeOverSynthetic {
  explicit FakeOverSynthetic(const Manifest& manifest)
      : synthetic(manifest, test::kTestSeed),
        fake(synthetic, [rows = manifest.partition_rows()](size_t, RowId row) {
          return row / rows % 2 != 0;
        }) {
    fake.Open();
  }
  SyntheticTier synthetic;
  FakeRowTier fake;
};

INSTANTIATE_TEST_SUITE_P(
    Tiers, RowTierContract,
    ::testing::Values(
        TierCase{
            "Host",
            [](const Manifest& manifest) { return FilledHostTier(manifest); }},
        // Whether the machine has these nodes or not: placing is best effort.
        TierCase{"HostOverNodes",
                 [](const Manifest& manifest) {
                   return FilledHostTier(manifest, {0, 1});
                 }},
        TierCase{"HostRefilled", RefilledHostTier},
        TierCase{"Synthetic",
                 [](const Manifest& manifest) {
                   return std::make_shared<SyntheticTier>(manifest,
                                                          test::kTestSeed);
                 }},
        TierCase{"Fake",
                 [](const Manifest& manifest) {
                   const auto made =
                       std::make_shared<FakeOverSynthetic>(manifest);
                   return std::shared_ptr<const RowTier>(made, &made->fake);
                 }}),
    [](const auto& info) { return info.param.name; });

TEST(HostTierTest, HoldsOwnedPartitionsOnly) {
  const Manifest manifest = test::TinyManifest();
  const uint32_t last = manifest.partition_count(1) - 1;
  const std::vector<PartitionRef> owned = {
      {manifest.layers()[0].layer_id, PartitionId{3}},
      {manifest.layers()[1].layer_id, PartitionId{last}}};
  const std::unique_ptr<HostTier> tier = EmptyHostTier(manifest);
  EXPECT_EQ(tier->memory_bytes(), 0U);
  EXPECT_EQ(tier->huge_page_bytes(), 0U);
  Fill(manifest, owned, *tier);
  const uint64_t rows = manifest.RowsIn(0, PartitionId{3}) +
                        manifest.RowsIn(1, PartitionId{last});
  EXPECT_EQ(tier->memory_bytes(), rows * manifest.row_format().row_bytes());
  EXPECT_LE(tier->huge_page_bytes(),
            HostTier::BytesNeeded(manifest, 0, owned) +
                HostTier::BytesNeeded(manifest, 1, owned));
  const std::vector<RowId> ids = {
      static_cast<RowId>(3 * manifest.partition_rows())};
  std::string out(tier->row_bytes(), '\xEE');
  std::vector<uint32_t> misses;
  ASSERT_THAT(tier->CopyRows(0, ids, test::BytesOf(out), misses), IsOk());
  EXPECT_EQ(out, SyntheticRows(manifest, owned[0].layer, ids));
  EXPECT_TRUE(misses.empty());
}

TEST(HostTierTest, TellsWhichRowsAreOfPartitionsThatAreNotHere) {
  const Manifest manifest = test::TinyManifest();
  const std::unique_ptr<HostTier> tier = EmptyHostTier(manifest);
  const LayerId layer = manifest.layers()[0].layer_id;
  Fill(manifest, {{layer, PartitionId{3}}}, *tier);
  EXPECT_TRUE(tier->IsAllocated(0, PartitionId{3}));
  EXPECT_FALSE(tier->IsAllocated(0, PartitionId{4}));
  EXPECT_FALSE(tier->IsAllocated(1, PartitionId{3}));
  const auto rows = static_cast<RowId>(manifest.partition_rows());
  const std::vector<RowId> ids = {4 * rows, 3 * rows, 0, 3 * rows + 1};
  std::string out(ids.size() * tier->row_bytes(), '\xEE');
  std::vector<uint32_t> misses;
  tier->CopyAllocated(0, ids, test::BytesOf(out), misses);
  EXPECT_THAT(misses, ::testing::ElementsAre(0, 2));
  const size_t row_bytes = tier->row_bytes();
  const std::string wanted = SyntheticRows(manifest, layer, ids);
  for (const size_t i : {1, 3}) {
    EXPECT_EQ(out.substr(i * row_bytes, row_bytes),
              wanted.substr(i * row_bytes, row_bytes));
  }
}

TEST(HostTierTest, FreedMemoryIsUsedFirst) {
  const Manifest manifest = test::TinyManifest();
  const std::unique_ptr<HostTier> tier = EmptyHostTier(manifest);
  const auto allocate = [&](uint32_t partition) {
    const auto bytes = tier->Allocate(0, PartitionId{partition});
    EXPECT_THAT(bytes, IsOk());
    return bytes->data();
  };
  const std::byte* const first = allocate(7);
  const std::byte* const second = allocate(3);
  EXPECT_GT(second, first);
  const size_t before = tier->memory_bytes();
  tier->Free(0, PartitionId{7});
  EXPECT_LT(tier->memory_bytes(), before);
  EXPECT_EQ(tier->MutablePartition(0, PartitionId{3}).data(), second);
  EXPECT_EQ(allocate(9), first);
  EXPECT_EQ(tier->memory_bytes(), before);
  EXPECT_GT(allocate(7), second);
}

TEST(HostTierTest, BytesNeededAreWholeHugePages) {
  const Manifest manifest = test::TinyManifest();
  EXPECT_EQ(HostTier::BytesNeeded(manifest, 0, {}), 0U);
  const uint64_t all =
      HostTier::BytesNeeded(manifest, 0, AllPartitions(manifest));
  const uint64_t rows_bytes =
      manifest.layers()[0].row_count * manifest.row_format().row_bytes();
  EXPECT_EQ(all % (2 << 20), 0U);
  EXPECT_GE(all, rows_bytes);
  EXPECT_LT(all, rows_bytes + (2 << 20));
}

TEST(HostTierDeathTest, APartitionIsAllocatedOnceAndThenFreedOnce) {
  const Manifest manifest = test::TinyManifest();
  const std::unique_ptr<HostTier> tier = EmptyHostTier(manifest);
  EXPECT_DEATH(tier->Free(0, PartitionId{1}), "data");
  EXPECT_DEATH(tier->MutablePartition(0, PartitionId{1}), "data");
  ASSERT_THAT(tier->Allocate(0, PartitionId{1}), IsOk());
  EXPECT_DEATH((void)tier->Allocate(0, PartitionId{1}), "data");
  EXPECT_DEATH(
      (void)tier->Allocate(0, PartitionId{manifest.partition_count(0)}),
      "layer_index");
}

}  // namespace
}  // namespace engram
