#include "table_server/loading/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "table_server/loading/table_source.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A checkpoint on disk, opened, and all that a load needs.
class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() : maker_("tiny") {}

  void WriteManifest(bool allow_nan = false) {
    maker_.Write(dir_.path());
    const auto checkpoint = Checkpoint::Open(dir_.path());
    ASSERT_THAT(checkpoint, IsOk());
    const auto manifest =
        BuildManifest(*checkpoint, {.allow_nan = allow_nan, .thread_count = 1},
                      [](uint64_t, uint64_t) {});
    ASSERT_THAT(manifest, IsOk());
    ASSERT_THAT(manifest->Save(dir_.File(kManifestFileName)), IsOk());
  }

  void Open() {
    auto source = OpenCheckpointSource(dir_.path());
    ASSERT_THAT(source, IsOk());
    source_.emplace(*std::move(source));
    const Manifest& manifest = source_->manifest;
    for (const ManifestLayer& layer : manifest.layers()) {
      const size_t index = *manifest.IndexOf(layer.layer_id);
      for (uint32_t p = 0; p < manifest.partition_count(index); p += 3) {
        owned_.push_back({layer.layer_id, PartitionId{p}});
      }
    }
    auto tier = HostTier::Create(manifest, owned_);
    ASSERT_THAT(tier, IsOk());
    tier_ = *std::move(tier);
    partitions_.emplace(manifest);
  }

  absl::StatusOr<LoadReport> Load(Loader::Options options) {
    return Loader(*source_->checkpoint, source_->manifest, *tier_, *partitions_,
                  std::move(options))
        .Load(owned_);
  }

  // Changes one byte of a tensor's rows on disk, behind the manifest's back.
  void FlipCodeOfRow(LayerId layer, uint64_t row) {
    auto& tensor = maker_.Tensor(
        absl::StrCat("layers.", ToInt(layer), ".engram.embed.weight"));
    tensor.bytes[row * maker_.config().head_dim] ^= std::byte{1};
    maker_.Write(dir_.path());
  }

  const TempDir dir_;
  CheckpointMaker maker_;
  std::optional<TableSource> source_;
  std::vector<PartitionRef> owned_;
  std::unique_ptr<HostTier> tier_;
  std::optional<PartitionSet> partitions_;
};

TEST_F(LoaderTest, LoadsVerifiesAndPublishesWhatIsOwned) {
  WriteManifest();
  Open();
  uint64_t last_done = 0;
  uint64_t total = 0;
  const auto report =
      Load({.thread_count = 2, .progress = [&](uint64_t done, uint64_t all) {
              EXPECT_GE(done, last_done);
              last_done = done;
              total = all;
            }});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->bytes, tier_->memory_bytes());
  EXPECT_EQ(last_done, report->bytes);
  EXPECT_EQ(total, report->bytes);
  for (const RowDefects& defects : report->defects) EXPECT_FALSE(defects.any());

  const Manifest& manifest = source_->manifest;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      EXPECT_EQ(partitions_->Holds(i, p), p % 3 == 0);
    }
    // Against the checkpoint's own way to give scattered rows.
    const RowId first = static_cast<RowId>(3 * manifest.partition_rows());
    const std::vector<RowId> ids = {first + 1, 0, first};
    std::vector<std::byte> loaded(ids.size() * tier_->row_bytes());
    std::vector<std::byte> wanted(loaded.size());
    ASSERT_THAT(tier_->CopyRows(i, ids, absl::MakeSpan(loaded)), IsOk());
    ASSERT_THAT(source_->checkpoint->GatherRows(i, ids, absl::MakeSpan(wanted)),
                IsOk());
    EXPECT_EQ(loaded, wanted);
  }
}

TEST_F(LoaderTest, ADamagedPartitionIsNamedAndNotPublished) {
  WriteManifest();
  const LayerId layer{14};
  FlipCodeOfRow(layer, 0);
  Open();
  EXPECT_THAT(
      Load({.thread_count = 1}),
      IsError(absl::StatusCode::kFailedPrecondition,
              AllOf(HasSubstr("manifest of another checkpoint or damaged file"),
                    HasSubstr("layer 14 partition 0"), HasSubstr(dir_.path()),
                    HasSubstr("digest"))));
  EXPECT_FALSE(partitions_->Holds(*source_->manifest.IndexOf(layer), 0));
}

TEST_F(LoaderTest, DamageElsewhereIsNoneOfItsBusiness) {
  WriteManifest();
  Open();
  const uint64_t row = source_->manifest.partition_rows();  // partition 1
  owned_.clear();
  FlipCodeOfRow(LayerId{1}, row);
  Open();
  EXPECT_THAT(Load({.thread_count = 1}), IsOk());
}

TEST_F(LoaderTest, NanCodesThatTheManifestAllowsAreCounted) {
  maker_.Tensor("layers.1.engram.embed.weight").bytes[5] = std::byte{0x7F};
  maker_.Tensor("layers.14.engram.embed.scale").bytes[0] = std::byte{0xFF};
  WriteManifest(/*allow_nan=*/true);
  Open();
  const auto report = Load({.thread_count = 2});
  ASSERT_THAT(report, IsOk());
  ASSERT_EQ(report->defects.size(), 2U);
  EXPECT_EQ(report->defects[0].nan_codes, 1U);
  EXPECT_EQ(report->defects[0].nan_scales, 0U);
  EXPECT_EQ(report->defects[1].nan_codes, 0U);
  EXPECT_EQ(report->defects[1].nan_scales, 1U);
}

TEST_F(LoaderTest, AFileCutWhileItIsMappedIsAnError) {
  WriteManifest();
  Open();
  for (const std::string& name : dir_.List()) {
    if (absl::EndsWith(name, ".safetensors")) {
      std::filesystem::resize_file(dir_.File(name), 0);
    }
  }
  EXPECT_THAT(Load({.thread_count = 2}),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("partition")));
}

TEST_F(LoaderTest, StopsWhenTold) {
  WriteManifest();
  Open();
  const std::atomic<bool> stop{true};
  EXPECT_THAT(Load({.thread_count = 2, .stop = &stop}),
              IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(partitions_->held_count(0), 0U);
}

TEST_F(LoaderTest, NoManifestNamesTheCommand) {
  maker_.Write(dir_.path());
  EXPECT_THAT(OpenCheckpointSource(dir_.path()),
              IsError(absl::StatusCode::kNotFound,
                      HasSubstr("engramctl manifest " + dir_.path())));
}

TEST_F(LoaderTest, ManifestOfAnotherCheckpoint) {
  WriteManifest();
  const TempDir other;
  CheckpointMaker("odd").Write(other.path());
  other.Write(kManifestFileName, test::ReadAll(dir_.File(kManifestFileName)));
  EXPECT_THAT(
      OpenCheckpointSource(other.path()),
      IsError(absl::StatusCode::kFailedPrecondition, HasSubstr(other.path())));
}

TEST(ParseSourceTest, TakesCheckpointAndSyntheticOnly) {
  EXPECT_EQ(*ParseSource("checkpoint"), std::nullopt);
  EXPECT_EQ(*ParseSource("synthetic:42"), 42U);
  for (const char* source :
       {"", "synthetic", "synthetic:", "synthetic:x", "synthetic:-1", "nvme"}) {
    EXPECT_THAT(ParseSource(source),
                IsError(absl::StatusCode::kInvalidArgument, HasSubstr(source)));
  }
}

}  // namespace
}  // namespace engram
