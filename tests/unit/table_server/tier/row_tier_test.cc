#include "table_server/tier/row_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// A host tier filled with the rows that a synthetic one computes.
std::unique_ptr<RowTier> FilledHostTier(
    const Manifest& manifest, const std::vector<PartitionRef>& owned,
    const std::vector<int>& numa_nodes = {}) {
  auto tier = HostTier::Create(manifest, owned, numa_nodes);
  EXPECT_THAT(tier, IsOk());
  const size_t row_bytes = manifest.row_format().row_bytes();
  for (const PartitionRef& ref : owned) {
    const size_t index = *manifest.IndexOf(ref.layer);
    auto bytes = (*tier)->MutablePartition(index, ref.partition);
    EXPECT_EQ(bytes.size(), manifest.RowsIn(index, ref.partition) * row_bytes);
    const uint64_t first = ToInt(ref.partition) * manifest.partition_rows();
    for (size_t i = 0; i * row_bytes < bytes.size(); ++i) {
      SyntheticRow(test::kTestSeed, ref.layer, static_cast<RowId>(first + i),
                   manifest.row_format(),
                   bytes.subspan(i * row_bytes, row_bytes));
    }
  }
  return *std::move(tier);
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
        TierCase{"Host",
                 [](const Manifest& manifest) {
                   return FilledHostTier(manifest, AllPartitions(manifest));
                 }},
        // Whether the machine has these nodes or not: placing is best effort.
        TierCase{
            "HostOverNodes",
            [](const Manifest& manifest) {
              return FilledHostTier(manifest, AllPartitions(manifest), {0, 1});
            }},
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
  const std::unique_ptr<RowTier> tier = FilledHostTier(manifest, owned);
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

TEST(HostTierTest, OwnsNothing) {
  const Manifest manifest = test::TinyManifest();
  const auto tier = HostTier::Create(manifest, {});
  ASSERT_THAT(tier, IsOk());
  EXPECT_EQ((*tier)->memory_bytes(), 0U);
  EXPECT_EQ(HostTier::BytesNeeded(manifest, 0, {}), 0U);
}

}  // namespace
}  // namespace engram
