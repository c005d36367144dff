#include "table_server/tier/row_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "table_server/tier/host_tier.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::engram::test::IsOk;
using ::engram::test::SyntheticRows;

std::vector<PartitionRef> AllPartitions(const Manifest& manifest) {
  std::vector<PartitionRef> refs;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      refs.push_back({manifest.layers()[i].layer_id, PartitionId{p}});
    }
  }
  return refs;
}

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

struct TierCase {
  const char* name;
  std::function<std::unique_ptr<RowTier>(const Manifest&)> make;
};

// The contract of RowTier, for every implementation.
class RowTierTest : public ::testing::TestWithParam<TierCase> {};

TEST_P(RowTierTest, CopiesAnyRowsInAnyOrder) {
  const Manifest manifest = test::TinyManifest();
  const std::unique_ptr<RowTier> tier = GetParam().make(manifest);
  EXPECT_EQ(tier->row_bytes(), manifest.row_format().row_bytes());
  std::mt19937 random(1);
  for (size_t layer = 0; layer < manifest.layers().size(); ++layer) {
    const ManifestLayer& table = manifest.layers()[layer];
    for (const size_t count : {0, 1, 7, 8, 9, 1000}) {
      std::vector<RowId> ids(count);
      for (RowId& id : ids) id = static_cast<RowId>(random() % table.row_count);
      if (count > 1) ids.back() = static_cast<RowId>(table.row_count - 1);
      std::string out(count * tier->row_bytes(), '\xEE');  // poisoned
      ASSERT_THAT(tier->CopyRows(
                      layer, ids,
                      absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()),
                                     out.size())),
                  IsOk());
      EXPECT_EQ(out, SyntheticRows(manifest, table.layer_id, ids));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, RowTierTest,
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
                 [](const Manifest& manifest) -> std::unique_ptr<RowTier> {
                   return std::make_unique<SyntheticTier>(manifest,
                                                          test::kTestSeed);
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
  ASSERT_THAT(
      tier->CopyRows(
          0, ids,
          absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()), out.size())),
      IsOk());
  EXPECT_EQ(out, SyntheticRows(manifest, owned[0].layer, ids));
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
