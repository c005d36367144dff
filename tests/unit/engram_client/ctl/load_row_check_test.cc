#include "engram_client/ctl/load_row_check.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::AllOf;
using testing::HasSubstr;

constexpr LayerId kLayer{1};
constexpr uint64_t kSeed = 5;

// The table that a server with `--source synthetic:SEED --preset tiny` has.
TableInfo SyntheticTable(uint64_t seed) {
  TableInfo table;
  table.config = PresetConfig("tiny").value();
  const EngramLayout layout = EngramLayout::Create(table.config).value();
  table.row_format =
      RowFormat::Create("F8_E4M3", "F8_E8M0", table.config.head_dim, 32)
          .value();
  table.partition_rows = 16;
  std::vector<ManifestLayer> layers;
  for (const LayerLayout& layer : layout.layers()) {
    table.layers.push_back({layer.layer_id, layer.row_count, 0});
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  table.version =
      Manifest::Create(table.config, table.row_format, table.partition_rows,
                       layers, absl::StrCat("synthetic:", seed))
          .value()
          .version();
  return table;
}

class RowCheckTest : public testing::Test {
 protected:
  RowCheckTest()
      : table_(SyntheticTable(kSeed)),
        reference_(MakeSyntheticReference(table_, kSeed).value()),
        row_bytes_(table_.row_format.row_bytes()),
        check_(reference_.get(), row_bytes_),
        ids_(200),
        rows_(ids_.size() * row_bytes_) {
    std::iota(ids_.begin(), ids_.end(), 3);
    EXPECT_THAT(reference_->Read(kLayer, ids_, absl::MakeSpan(rows_)), IsOk());
  }

  RowCheck::Result Compare(const RowSample& sample, uint64_t offset = 0) {
    return check_.Compare(kLayer, ids_, rows_, offset, sample).value();
  }

  const TableInfo table_;
  const std::unique_ptr<RowReference> reference_;
  const size_t row_bytes_;
  const RowCheck check_;
  std::vector<RowId> ids_;
  std::vector<std::byte> rows_;
};

TEST_F(RowCheckTest, RightRowsPass) {
  const RowCheck::Result result = Compare({.step = 1});
  EXPECT_EQ(result.compared, 200);
  EXPECT_EQ(result.wrong, 0);
  EXPECT_FALSE(result.first.has_value());
}

TEST_F(RowCheckTest, EveryFlippedBitOfARowIsFound) {
  constexpr size_t kSlot = 137;
  for (size_t byte = 0; byte < row_bytes_; ++byte) {
    std::byte& flipped = rows_[kSlot * row_bytes_ + byte];
    for (int bit = 0; bit < 8; ++bit) {
      flipped ^= std::byte(1 << bit);
      const RowCheck::Result result = Compare({.step = 1});
      ASSERT_EQ(result.wrong, 1);
      ASSERT_EQ(result.first->slot, kSlot);
      ASSERT_EQ(result.first->item, ids_[kSlot]);
      ASSERT_EQ(result.first->byte, byte);
      ASSERT_EQ(result.first->wanted ^ result.first->got, 1 << bit);
      flipped ^= std::byte(1 << bit);
    }
  }
}

TEST_F(RowCheckTest, TheFirstIsNamedAndAllAreCounted) {
  for (const size_t slot : {199, 70, 71})
    rows_[slot * row_bytes_ + 2] ^= std::byte{1};
  const RowCheck::Result result = Compare({.step = 1});
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.first->version, table_.version);
  EXPECT_THAT(result.first->text,
              AllOf(HasSubstr(table_.version), HasSubstr("layer 1,"),
                    HasSubstr("row 73 in slot 70 of 200: byte 2 is 0x")));
}

TEST_F(RowCheckTest, ARowThatIsNotItsIdsIsWrong) {
  std::swap(ids_[10], ids_[11]);
  EXPECT_EQ(Compare({.step = 1}).wrong, 2);
}

TEST_F(RowCheckTest, AnUnwrittenRowIsWrongAndSaysSo) {
  std::vector<std::byte> written = rows_;
  check_.Poison({.step = 1}, absl::MakeSpan(rows_));
  std::copy(written.begin(), written.end() - row_bytes_, rows_.begin());
  const RowCheck::Result result = Compare({.step = 1});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first->slot, 199);
  EXPECT_THAT(result.first->text, HasSubstr("nothing was written"));
}

// A sample runs over the rows of all layers: those of the second one go on
// where the first one's ended.
TEST_F(RowCheckTest, SamplesTakeOneRowInSoMany) {
  rows_[0] ^= std::byte{1};
  EXPECT_EQ(Compare({.first = 1, .step = 10}).compared, 20);
  EXPECT_EQ(Compare({.first = 1, .step = 10}).wrong, 0);
  EXPECT_EQ(Compare({.first = 0, .step = 10}).wrong, 1);
  EXPECT_EQ(Compare({.first = 0, .step = 7}, 200).wrong, 0);  // next is 203
  EXPECT_EQ(Compare({.first = 4, .step = 7}, 200).wrong, 1);
  EXPECT_EQ(Compare({.first = 4, .step = 7}, 200).compared, 29);
  EXPECT_EQ(Compare({.first = 4, .step = 1000}, 200).compared, 0);
  EXPECT_EQ(Compare({.first = 200, .step = 1000}, 200).wrong, 1);
  EXPECT_EQ(Compare({.step = 0}).compared, 0);
}

TEST_F(RowCheckTest, PoisonTakesTheSampledRows) {
  const std::vector<std::byte> before = rows_;
  check_.Poison({.step = 0}, absl::MakeSpan(rows_));
  EXPECT_EQ(rows_, before);
  check_.Poison({.first = 3, .step = 50}, absl::MakeSpan(rows_));
  for (size_t slot = 0; slot < ids_.size(); ++slot) {
    const bool taken = slot % 50 == 3;
    for (size_t at = slot * row_bytes_; at < (slot + 1) * row_bytes_; ++at) {
      ASSERT_EQ(rows_[at], taken ? kPoison : before[at]);
    }
  }
}

TEST(ParseCheckTest, AllNoneAndSamples) {
  EXPECT_EQ(*ParseCheck("all"), 1);
  EXPECT_EQ(*ParseCheck("none"), 0);
  EXPECT_EQ(*ParseCheck("sample:100"), 100);
  for (const char* text : {"", "some", "sample", "sample:", "sample:0",
                           "sample:-1", "sample:2000000000", "sample:1x"}) {
    EXPECT_THAT(ParseCheck(text),
                IsError(StatusCode::kInvalidArgument,
                        HasSubstr(absl::StrCat("\"", text, "\""))));
  }
}

TEST(SyntheticReferenceTest, AnotherSeedIsRefused) {
  EXPECT_THAT(MakeSyntheticReference(SyntheticTable(5), 6),
              IsError(StatusCode::kFailedPrecondition,
                      AllOf(HasSubstr("not synthetic:6"),
                            HasSubstr(SyntheticTable(5).version),
                            HasSubstr(SyntheticTable(6).version))));
}

TEST(CheckpointReferenceTest, RowsAndVersionAreTheCheckpoints) {
  const test::TempDir dir;
  test::CheckpointMaker("tiny").Write(dir.path());
  EXPECT_THAT(OpenCheckpointReference(dir.path()),
              IsError(StatusCode::kNotFound, HasSubstr(kManifestFileName)));
  const Checkpoint checkpoint = Checkpoint::Open(dir.path()).value();
  const absl::StatusOr<Manifest> written = test::WriteManifest(dir.path());
  ASSERT_THAT(written, IsOk());
  const Manifest& manifest = *written;

  const auto reference = OpenCheckpointReference(dir.path());
  ASSERT_THAT(reference, IsOk());
  EXPECT_EQ((*reference)->version(), manifest.version());
  const std::vector<RowId> ids = {9, 2, 2};
  const size_t bytes = ids.size() * checkpoint.row_format().row_bytes();
  std::vector<std::byte> got(bytes), want(bytes);
  const LayerId layer = manifest.layers()[1].layer_id;
  EXPECT_THAT((*reference)->Read(layer, ids, absl::MakeSpan(got)), IsOk());
  EXPECT_THAT(checkpoint.GatherRows(1, ids, absl::MakeSpan(want)), IsOk());
  EXPECT_EQ(got, want);
}

TEST(CheckpointReferenceTest, AManifestOfAnotherTableIsRefused) {
  const test::TempDir dir;
  test::CheckpointMaker("tiny").Write(dir.path());
  const TableInfo table = SyntheticTable(5);
  std::vector<ManifestLayer> layers;
  for (const TableInfo::Layer& layer : table.layers) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  const Manifest synthetic =
      Manifest::Create(table.config, table.row_format, table.partition_rows,
                       layers, "synthetic:5")
          .value();
  ASSERT_THAT(synthetic.Save(dir.File(kManifestFileName)), IsOk());
  EXPECT_THAT(
      OpenCheckpointReference(dir.path()),
      IsError(StatusCode::kFailedPrecondition, HasSubstr("synthetic:5")));
}

}  // namespace
}  // namespace engram::ctl
