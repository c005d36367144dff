#include "table_server/loading/served_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/model/manifest.h"
#include "table_server/store/store_manifest.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

class ServedTableTest : public ::testing::Test {
 protected:
  ServedTableTest() {
    CheckpointMaker("tiny").Write(checkpoint_.path());
    EXPECT_THAT(test::WriteManifest(checkpoint_.path()), IsOk());
    manifest_path_ = checkpoint_.File(kManifestFileName);
  }
  void Keep() {
    const auto manifest = Manifest::Load(manifest_path_);
    ASSERT_THAT(manifest, IsOk());
    version_ = manifest->version();
    ASSERT_THAT(KeepManifest(ManifestsOfFlatStores(store_.path()), *manifest),
                IsOk());
  }
  // A checkpoint by URL whose server says nothing.
  static TableSourceOptions Silent(absl::Status status) {
    return {.checkpoint_dir = "https://127.0.0.1:1/m",
            .while_opening = [status] { return status; }};
  }
  TierOptions Tiers() const { return {.store = "flat:" + store_.path()}; }

  const test::TempDir checkpoint_;
  const test::TempDir store_;
  std::string manifest_path_;
  std::string version_;
};

TEST_F(ServedTableTest, AStoreStandsInForACheckpointThatDoesNotAnswer) {
  Keep();
  const auto silent = Silent(absl::UnavailableError("nobody there"));
  const auto table = OpenServedTable(silent, Tiers());
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->manifest.version(), version_);
  EXPECT_EQ(table->http, nullptr);
  EXPECT_THAT(
      OpenServedTable(silent, {}),
      IsError(absl::StatusCode::kUnavailable, HasSubstr("nobody there")));
}

TEST_F(ServedTableTest, SoDoesAStoreWithAManifestFile) {
  TableSourceOptions silent = Silent(absl::UnavailableError("nobody there"));
  silent.manifest_path = manifest_path_;
  const auto table = OpenServedTable(silent, Tiers());
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->http, nullptr);
}

TEST_F(ServedTableTest, WhatTheServerSaysIsNotPassedOver) {
  Keep();
  EXPECT_THAT(
      OpenServedTable(Silent(absl::PermissionDeniedError("not for you")),
                      Tiers()),
      IsError(absl::StatusCode::kPermissionDenied, HasSubstr("not for you")));
}

TEST_F(ServedTableTest, AnEmptyStoreStandsInForNothing) {
  EXPECT_THAT(
      OpenServedTable(Silent(absl::UnavailableError("nobody there")), Tiers()),
      IsError(absl::StatusCode::kUnavailable, HasSubstr("nobody there")));
  EXPECT_THAT(OpenServedTable({.source = "peers"}, Tiers()),
              IsError(absl::StatusCode::kNotFound, HasSubstr(store_.path())));
}

TEST_F(ServedTableTest, PeersTakeTheManifestOfTheStore) {
  Keep();
  const auto table = OpenServedTable({.source = "peers"}, Tiers());
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->manifest.version(), version_);
  EXPECT_FALSE(table->checkpoint.has_value());
}

}  // namespace
}  // namespace engram
