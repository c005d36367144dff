#include "table_server/loading/table_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/manifest.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

void WriteCheckpoint(const TempDir& dir) {
  CheckpointMaker("tiny").Write(dir.path());
  ASSERT_THAT(test::WriteManifest(dir.path()), IsOk());
}

TEST(TableSourceTest, ACheckpointWithItsManifest) {
  const TempDir dir;
  WriteCheckpoint(dir);
  const auto source = OpenTableSource({.checkpoint_dir = dir.path()});
  ASSERT_THAT(source, IsOk());
  EXPECT_TRUE(source->checkpoint.has_value());
  EXPECT_FALSE(source->synthetic_seed.has_value());
  EXPECT_THAT(OpenTableSource({}), IsError(kInvalid, HasSubstr("checkpoint")));
}

TEST(TableSourceTest, NoManifestNamesTheCommand) {
  const TempDir dir;
  CheckpointMaker("tiny").Write(dir.path());
  EXPECT_THAT(OpenCheckpointSource(dir.path()),
              IsError(absl::StatusCode::kNotFound,
                      HasSubstr("engramctl manifest " + dir.path())));
}

TEST(TableSourceTest, ManifestOfAnotherCheckpoint) {
  const TempDir dir;
  WriteCheckpoint(dir);
  const TempDir other;
  CheckpointMaker("odd").Write(other.path());
  other.Write(kManifestFileName, test::ReadAll(dir.File(kManifestFileName)));
  EXPECT_THAT(
      OpenCheckpointSource(other.path()),
      IsError(absl::StatusCode::kFailedPrecondition, HasSubstr(other.path())));
}

TEST(TableSourceTest, RowsOfPeersNeedTheManifestOnly) {
  const TempDir dir;
  WriteCheckpoint(dir);
  const auto source = OpenTableSource(
      {.source = "peers", .manifest_path = dir.File(kManifestFileName)});
  ASSERT_THAT(source, IsOk());
  EXPECT_FALSE(source->checkpoint.has_value());
  EXPECT_FALSE(source->synthetic_seed.has_value());
  EXPECT_EQ(source->manifest.version(),
            OpenCheckpointSource(dir.path())->manifest.version());
  EXPECT_THAT(OpenTableSource({.source = "peers"}),
              IsError(kInvalid, HasSubstr("manifest")));
}

TEST(TableSourceTest, SyntheticTables) {
  const auto source =
      OpenTableSource({.source = "synthetic:42", .preset = "tiny"});
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(source->synthetic_seed, 42U);
  EXPECT_FALSE(source->checkpoint.has_value());
}

TEST(TableSourceTest, OtherSourcesAreNamed) {
  for (const char* source :
       {"", "synthetic", "synthetic:", "synthetic:x", "synthetic:-1", "nvme"}) {
    EXPECT_THAT(OpenTableSource({.source = source, .preset = "tiny"}),
                IsError(kInvalid, HasSubstr(source)));
  }
}

}  // namespace
}  // namespace engram
