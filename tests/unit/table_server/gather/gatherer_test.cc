#include "table_server/gather/gatherer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::SyntheticRows;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GathererTest : public ::testing::Test {
 protected:
  LayerId layer(size_t index) const {
    return manifest_.layers()[index].layer_id;
  }
  uint64_t rows(size_t index) const {
    return manifest_.layers()[index].row_count;
  }
  RowId FirstRowOf(uint32_t partition) const {
    return static_cast<RowId>(partition * manifest_.partition_rows());
  }
  CallGuard Guard() const { return CallGuard(deadline_, cancelled_, clock_); }
  absl::Status Gather(const std::vector<LayerRowIds>& layers) {
    return Gather(gatherer_, "", layers);
  }
  // As a call does it: all checks, then all rows. On an error out_ is empty.
  absl::Status Gather(const Gatherer& gatherer, absl::string_view version,
                      const std::vector<LayerRowIds>& layers) {
    out_.clear();
    ENGRAM_RETURN_IF_ERROR(Guard().Check());
    ENGRAM_ASSIGN_OR_RETURN(const CheckedGather gather,
                            gatherer.Check(version, layers));
    std::string rows(gather.row_count * gatherer.row_bytes(), '\xEE');
    ENGRAM_RETURN_IF_ERROR(gatherer.Copy(
        gather, 0,
        absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size()),
        Guard(), missed_));
    out_ = std::move(rows);
    return absl::OkStatus();
  }

  const Manifest manifest_ = test::TinyManifest();
  PartitionSet partitions_{manifest_};
  const SyntheticTier tier_{manifest_, test::kTestSeed};
  const Gatherer gatherer_{
      manifest_, partitions_, tier_, {.server_name = "s1", .max_rows = 10000}};
  FakeClock clock_{absl::UnixEpoch()};
  absl::Time deadline_ = absl::InfiniteFuture();
  std::atomic<bool> cancelled_{false};
  std::string out_ = "from before";
  std::vector<RowFetch> missed_;
};

TEST_F(GathererTest, RowsComeInTheOrderAskedWithDuplicates) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> ids = {5, 0, static_cast<RowId>(rows(0) - 1), 5, 5};
  ASSERT_THAT(Gather({{layer(0), ids}}), IsOk());
  EXPECT_EQ(out_, SyntheticRows(manifest_, layer(0), ids));
}

TEST_F(GathererTest, LayersStandOneAfterAnother) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> first = {9, 1};
  const std::vector<RowId> second = {1, 9, 2};
  ASSERT_THAT(
      Gather({{layer(1), second}, {layer(0), first}, {layer(1), first}}),
      IsOk());
  EXPECT_EQ(out_, SyntheticRows(manifest_, layer(1), second) +
                      SyntheticRows(manifest_, layer(0), first) +
                      SyntheticRows(manifest_, layer(1), first));
}

TEST_F(GathererTest, NothingAskedIsNothingGiven) {
  ASSERT_THAT(Gather({}), IsOk());
  EXPECT_EQ(out_, "");
  ASSERT_THAT(Gather({{layer(0), {}}}), IsOk());
  EXPECT_EQ(out_, "");
}

TEST_F(GathererTest, PiecesMakeUpTheWhole) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> first = {3, 1, 4, 1, 5};
  const std::vector<RowId> second = {9, 2, 6};
  const std::vector<LayerRowIds> layers = {
      {layer(0), first}, {layer(1), {}}, {layer(1), second}};
  ASSERT_THAT(Gather(layers), IsOk());
  const auto checked = gatherer_.Check("", layers);
  ASSERT_THAT(checked, IsOk());
  ASSERT_EQ(checked->row_count, 8U);
  const size_t row_bytes = gatherer_.row_bytes();
  for (size_t piece_rows = 1; piece_rows <= 8; ++piece_rows) {
    std::string pieces;
    for (size_t at = 0; at < 8; at += piece_rows) {
      std::string piece(std::min(piece_rows, 8 - at) * row_bytes, '?');
      ASSERT_THAT(gatherer_.Copy(
                      *checked, at,
                      absl::MakeSpan(reinterpret_cast<std::byte*>(piece.data()),
                                     piece.size()),
                      Guard(), missed_),
                  IsOk());
      pieces += piece;
    }
    EXPECT_EQ(pieces, out_) << piece_rows;
  }
}

TEST_F(GathererTest, VersionIsEmptyOrTheOneServed) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> ids = {1};
  EXPECT_THAT(Gather(gatherer_, manifest_.version(), {{layer(0), ids}}),
              IsOk());
  const absl::Status status = Gather(gatherer_, "abc", {{layer(0), ids}});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kWrongTable);
  EXPECT_EQ(MetadataOf(status, "asked"), "abc");
  EXPECT_EQ(MetadataOf(status, "served"), manifest_.version());
  EXPECT_EQ(out_, "");
}

TEST_F(GathererTest, EchoesNoMoreThanTheLengthOfAVersion) {
  const auto asked = [&](const std::string& version) {
    return MetadataOf(gatherer_.Check(version, {}).status(), "asked");
  };
  EXPECT_EQ(asked(std::string(64, 'v')), std::string(64, 'v'));
  EXPECT_EQ(asked(std::string(100000, 'v')), std::string(64, 'v'));
  // Not in the middle of a character: metadata has to be UTF-8.
  EXPECT_EQ(asked(std::string(63, 'v') + "\u00e9"), std::string(63, 'v'));
  EXPECT_LT(
      gatherer_.Check(std::string(100000, 'v'), {}).status().message().size(),
      300U);
}

TEST_F(GathererTest, UnknownLayer) {
  const absl::Status status = Gather({{LayerId{4711}, {}}});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kUnknownLayer);
  EXPECT_EQ(MetadataOf(status, "layer"), "4711");
  EXPECT_EQ(out_, "");
}

TEST_F(GathererTest, RowOutOfRange) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> ids = {1, static_cast<RowId>(rows(1))};
  const absl::Status status = Gather({{layer(1), ids}});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kRowOutOfRange);
  EXPECT_EQ(MetadataOf(status, "row"), absl::StrCat(rows(1)));
  EXPECT_EQ(MetadataOf(status, "rows"), absl::StrCat(rows(1)));
  EXPECT_EQ(MetadataOf(status, "layer"), absl::StrCat(ToInt(layer(1))));
  EXPECT_EQ(out_, "");
  const std::vector<RowId> minus_one = {0xFFFFFFFF};
  EXPECT_EQ(ReasonOf(Gather({{layer(1), minus_one}})),
            ErrorReason::kRowOutOfRange);
}

TEST_F(GathererTest, ListsEveryMissingPartitionOnce) {
  partitions_.Add(0, PartitionId{1});
  const std::vector<RowId> first = {FirstRowOf(3), FirstRowOf(1), FirstRowOf(2),
                                    FirstRowOf(3) + 1};
  const std::vector<RowId> second = {FirstRowOf(1)};
  const absl::Status status = Gather({{layer(0), first}, {layer(1), second}});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kPartitionNotHere);
  EXPECT_EQ(MetadataOf(status, "server"), "s1");
  EXPECT_THAT(MissingPartitionsOf(status),
              ElementsAre(PartitionRef{layer(0), PartitionId{2}},
                          PartitionRef{layer(0), PartitionId{3}},
                          PartitionRef{layer(1), PartitionId{1}}));
  EXPECT_EQ(out_, "");
}

TEST_F(GathererTest, ACheckedGatherGoesOnWithoutItsPartition) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> ids = {FirstRowOf(2), FirstRowOf(3)};
  const std::vector<LayerRowIds> layers = {{layer(0), ids}};
  auto checked = gatherer_.Check("", layers);
  ASSERT_THAT(checked, IsOk());
  partitions_.Withdraw(0, PartitionId{3});
  EXPECT_THAT(Gather(layers), IsOk());
  const LeaseEpochs::Mark mark = partitions_.Drop(0, PartitionId{3});
  EXPECT_THAT(MissingPartitionsOf(Gather(layers)),
              ElementsAre(PartitionRef{layer(0), PartitionId{3}}));
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
  std::string rows(ids.size() * gatherer_.row_bytes(), '\xEE');
  const CheckedGather moved = *std::move(checked);
  ASSERT_THAT(
      gatherer_.Copy(moved, 0,
                     absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()),
                                    rows.size()),
                     Guard(), missed_),
      IsOk());
  EXPECT_EQ(rows, SyntheticRows(manifest_, layer(0), ids));
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
}

TEST_F(GathererTest, ARefusedGatherHoldsNothingUp) {
  partitions_.Add(0, PartitionId{1});
  partitions_.Withdraw(0, PartitionId{1});
  const std::vector<RowId> ids = {FirstRowOf(1), FirstRowOf(2)};
  const std::vector<LayerRowIds> layers = {{layer(0), ids}};
  const auto refused = gatherer_.Check("", layers);
  EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kPartitionNotHere);
  EXPECT_TRUE(partitions_.LeasesEnded(partitions_.Drop(0, PartitionId{1})));
}

TEST_F(GathererTest, TooManyRowsAreTooLarge) {
  test::AddAll(manifest_, partitions_);
  const std::vector<RowId> ids(5000, 1);
  EXPECT_THAT(Gather({{layer(0), ids}, {layer(1), ids}}), IsOk());
  const std::vector<RowId> one = {1};
  const absl::Status status =
      Gather({{layer(0), ids}, {layer(1), ids}, {layer(0), one}});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge);
  EXPECT_EQ(MetadataOf(status, "what"), "rows");
  EXPECT_EQ(MetadataOf(status, "value"), "10001");
  EXPECT_EQ(MetadataOf(status, "limit"), "10000");
  EXPECT_EQ(out_, "");
}

TEST_F(GathererTest, TooManyLayerEntriesAreTooLarge) {
  const std::vector<LayerRowIds> layers(1025, {layer(0), {}});
  const absl::Status status = Gather(layers);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge);
  EXPECT_EQ(MetadataOf(status, "what"), "layers");
}

TEST_F(GathererTest, NothingIsGatheredPastTheDeadline) {
  test::AddAll(manifest_, partitions_);
  deadline_ = clock_.Now();
  const std::vector<RowId> ids = {1};
  EXPECT_THAT(
      Gather({{layer(0), ids}}),
      IsError(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
  EXPECT_EQ(out_, "");
}

// Cancels the call from within its first copy.
class CancellingTier final : public RowTier {
 public:
  CancellingTier(const RowTier& tier, std::atomic<bool>& cancelled)
      : tier_(tier), cancelled_(cancelled) {}
  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override {
    rows_ += row_ids.size();
    cancelled_.store(true);
    return tier_.CopyRows(layer_index, row_ids, out, misses);
  }
  size_t row_bytes() const override { return tier_.row_bytes(); }
  size_t memory_bytes() const override { return 0; }
  size_t huge_page_bytes() const override { return 0; }
  size_t rows() const { return rows_; }

 private:
  const RowTier& tier_;
  std::atomic<bool>& cancelled_;
  mutable size_t rows_ = 0;
};

TEST_F(GathererTest, ACancelledGatherStopsUnderWay) {
  test::AddAll(manifest_, partitions_);
  const CancellingTier tier(tier_, cancelled_);
  const Gatherer gatherer(manifest_, partitions_, tier,
                          {.server_name = "s1", .max_rows = 10000});
  const std::vector<RowId> ids(10000, 3);
  EXPECT_THAT(Gather(gatherer, "", {{layer(0), ids}}),
              IsError(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_LT(tier.rows(), ids.size());
  EXPECT_EQ(out_, "");
}

}  // namespace
}  // namespace engram
