#include "engram_client/ctl/verify_partitions.h"

#include <filesystem>

#include "engram_client/ctl/import_partitions.h"
#include "table_server/store/fake_local_store.h"
#include "tests/unit/engram_client/ctl/made_up_table.h"
#include "tests/unit/table_server/store/store_files_of.h"

namespace engram::ctl {
namespace {

using test::IsOk;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class VerifyPartitionsTest : public MadeUpTable {
 protected:
  VerifyResult Verify(LocalStore& store) {
    return VerifyPartitions(manifest(), PlaceOfStore(store), store.Partitions(),
                            {.threads = 2});
  }
  VerifyResult VerifyCheckpoint() {
    return VerifyPartitions(manifest(),
                            PlaceOfCheckpoint(*source_, *partitions_), all_,
                            {.threads = 2});
  }
  void FillStore(LocalStore& store) {
    ASSERT_THAT(
        ImportPartitions(manifest(), *partitions_, store, all_, {.threads = 2}),
        IsOk());
  }
  void ExpectAllSound(const VerifyResult& result) {
    EXPECT_EQ(result.sound, all_.size());
    EXPECT_EQ(result.sound_bytes, BytesOf(manifest(), all_));
    EXPECT_THAT(result.bad, SizeIs(0));
    EXPECT_FALSE(result.looked_at.interrupted);
  }
};

TEST_F(VerifyPartitionsTest, SoundCheckpoint) {
  ExpectAllSound(VerifyCheckpoint());
}

TEST_F(VerifyPartitionsTest, DamageOfACheckpointIsNamedAndTheRestLookedAt) {
  const std::string file = DamageCheckpoint();
  const VerifyResult result = VerifyCheckpoint();
  ASSERT_THAT(result.bad, SizeIs(1));
  const BadPartition& bad = result.bad[0];
  EXPECT_EQ(bad.ref, (PartitionRef{LayerId{1}, PartitionId{kDamaged}}));
  EXPECT_EQ(bad.files, file);
  EXPECT_TRUE(bad.damaged);
  EXPECT_EQ(bad.error, "");
  EXPECT_THAT(bad.expected_digest, SizeIs(32));
  EXPECT_THAT(bad.actual_digest, SizeIs(32));
  EXPECT_NE(bad.actual_digest, bad.expected_digest);
  EXPECT_EQ(result.sound, all_.size() - 1);
  EXPECT_EQ(result.looked_at.partitions, all_.size());
}

class VerifyStoreTest : public VerifyPartitionsTest,
                        public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { FillStore(*OpenStore(GetParam())); }
};

TEST_P(VerifyStoreTest, SoundStore) {
  ExpectAllSound(Verify(*OpenStoreToRead(GetParam())));
}

TEST_P(VerifyStoreTest, AllDamageIsFoundEachTimeAndLeft) {
  std::vector<std::string> files;
  for (const size_t i : {3u, 9u}) {
    const std::string row =
        RowsOf(all_[i]).substr(33 * 7, 33);  // none of zeros
    files.push_back(test::FileWith(dir_.File("store"), row));
    ASSERT_TRUE(test::DamageRow(dir_.File("store"), row));
  }
  for (int round = 0; round < 2; ++round) {
    const VerifyResult result = Verify(*OpenStoreToRead(GetParam()));
    ASSERT_THAT(result.bad, SizeIs(2));
    EXPECT_EQ(result.sound, all_.size() - 2);
    for (const size_t i : {0u, 1u}) {
      EXPECT_EQ(result.bad[i].ref, all_[i == 0 ? 3 : 9]);
      EXPECT_EQ(result.bad[i].files, files[i]);
      EXPECT_TRUE(result.bad[i].damaged);
      EXPECT_THAT(result.bad[i].error, HasSubstr(files[i]));
      EXPECT_TRUE(std::filesystem::exists(files[i]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, VerifyStoreTest,
                         ::testing::Values("flat", "rocksdb"),
                         [](const auto& info) { return info.param; });

// What no checksum of a store finds.
TEST_F(VerifyPartitionsTest, OtherRowsThanTheManifests) {
  FakeLocalStore store(manifest());
  FillStore(store);
  store.Replace(all_[4], std::string(BytesOf(manifest(), all_[4]), 'x'));
  const VerifyResult result = Verify(store);
  ASSERT_THAT(result.bad, SizeIs(1));
  EXPECT_EQ(result.bad[0].ref, all_[4]);
  EXPECT_TRUE(result.bad[0].damaged);
  EXPECT_NE(result.bad[0].actual_digest, result.bad[0].expected_digest);
  EXPECT_EQ(result.bad[0].files, "fake store");
}

TEST_F(VerifyPartitionsTest, WhatCannotBeReadIsNotCalledDamaged) {
  FakeLocalStore store(manifest());
  FillStore(store);
  store.FailReads(absl::UnavailableError("the disk is slow"));
  const VerifyResult result = Verify(store);
  ASSERT_THAT(result.bad, SizeIs(all_.size()));
  EXPECT_FALSE(result.bad[0].damaged);
  EXPECT_EQ(result.bad[0].error, "the disk is slow");
  EXPECT_EQ(result.sound, 0u);
}

TEST_F(VerifyPartitionsTest, Interrupted) {
  const VerifyResult result = VerifyPartitions(
      manifest(), PlaceOfCheckpoint(*source_, *partitions_), all_,
      {.threads = 1, .interrupted = [] { return true; }});
  EXPECT_TRUE(result.looked_at.interrupted);
  EXPECT_EQ(result.sound, 0u);
}

}  // namespace
}  // namespace engram::ctl
