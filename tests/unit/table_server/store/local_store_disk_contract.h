#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_DISK_CONTRACT_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_DISK_CONTRACT_H_

// What every LocalStore has to do with its disk: how much it takes, and what is
// found damaged there.

#include "table_server/store/damaged_partition.h"
#include "tests/unit/table_server/store/local_store_contract.h"
#include "tests/unit/table_server/store/store_files_of.h"

namespace engram::test {

// Of small files that a store has, less than a partition.
inline constexpr uint64_t kBesideRows = 128 << 10;

TEST_P(LocalStoreContract, WhatIsRemovedTakesNoRoomHoweverOftenItCame) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 1)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 2)), IsOk());
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
    ASSERT_THAT(store_->Remove(Ref(0, 2)), IsOk());
    ASSERT_THAT(store_->Remove(Ref(0, 0)), IsOk());
    EXPECT_EQ(store_->disk_bytes(), bytes);
  }
  store_.reset();  // what it does in the background has ended then
  EXPECT_LE(RowFileBytes(dir_.File("store")), bytes + kBesideRows);
  Open();
  EXPECT_EQ(store_->disk_bytes(), bytes);
  EXPECT_EQ(store_->Partitions(), std::vector<PartitionRef>{Ref(0, 1)});
}

TEST_P(LocalStoreContract, WhatIsReplacedTakesNoRoom) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 1)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  for (int round = 0; round < 5; ++round) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
    EXPECT_LE(store_->disk_bytes(), bytes);
  }
  const uint64_t told = store_->disk_bytes();
  store_.reset();
  EXPECT_LE(RowFileBytes(dir_.File("store")), bytes + kBesideRows);
  Open();
  EXPECT_EQ(store_->disk_bytes(), told);
}

TEST_P(LocalStoreContract, TellsBeforeWhatAPartitionTakes) {
  Open();
  uint64_t told = 0;
  for (uint32_t p = 0; p <= LastPartition(0); ++p) {
    told += store_->DiskBytesOf(Ref(0, p));
  }
  PutAll(0);
  EXPECT_GE(told, store_->disk_bytes());
  EXPECT_LE(told, store_->disk_bytes() * 5 / 4);
  EXPECT_GE(store_->disk_bytes() + kBesideRows,
            RowFileBytes(dir_.File("store")));
  Open({.max_bytes = told});
  for (uint32_t p = 0; p <= LastPartition(0); ++p) {
    ASSERT_THAT(store_->Remove(Ref(0, p)), IsOk());
  }
  PutAll(0);
}

// Rows of which a page has many, few, one, and less than one.
TEST_P(LocalStoreContract, RowsOfAnyWidth) {
  for (const uint32_t width : {32u, 256u, 640u, 1344u, 4064u, 9280u}) {
    store_.reset();
    const Manifest manifest = MakeWideManifest(width);
    auto store = GetParam().open(
        manifest, {.dir = dir_.File(absl::StrCat("store-", width))});
    ASSERT_THAT(store, IsOk()) << width;
    const PartitionRef ref{manifest.layers()[0].layer_id, PartitionId{0}};
    const uint64_t told = (*store)->DiskBytesOf(ref);
    ASSERT_THAT(PutMade(**store, manifest, ref), IsOk()) << width;
    EXPECT_LE((*store)->disk_bytes(), told) << width;
    const std::vector<RowId> rows = {0, 1, 17, 63, 64, 255};
    const auto got = FetchRows(**store, manifest, 0, rows);
    ASSERT_THAT(got, IsOk()) << width;
    EXPECT_EQ(*got, MadeRows(manifest, ref.layer, rows)) << width;
    const auto whole = ReadPartition(**store, manifest, ref);
    ASSERT_THAT(whole, IsOk()) << width;
    EXPECT_EQ(*whole, MadePartition(manifest, ref)) << width;
    EXPECT_GE((*store)->stats().read_bytes, whole->size()) << width;
  }
}

TEST_P(LocalStoreContract, DamagedPartitionIsDroppedOnceAndForGood) {
  Open();
  PutAll(0);
  const uint64_t bytes = store_->disk_bytes();
  const size_t partitions = store_->Partitions().size();
  ASSERT_TRUE(DamageRow(dir_.File("store"), Rows(0, {FirstRow(2)})));
  const auto lost = FetchRows(*store_, manifest_, 0, {0, FirstRow(2)});
  EXPECT_THAT(lost, IsError(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_EQ(DamagedPartitionOf(lost.status()), Ref(0, 2));
  EXPECT_FALSE(store_->Has(Ref(0, 2)));
  EXPECT_LT(store_->disk_bytes(), bytes);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(2)}),
              IsError(absl::StatusCode::kNotFound, ::testing::_));
  EXPECT_EQ(store_->stats().dropped_damaged, 1u);
  EXPECT_EQ(store_->stats().corrupt_blocks, 1u);
  EXPECT_THAT(store_->Remove(Ref(0, 2)), IsOk());
  Open();
  EXPECT_FALSE(store_->Has(Ref(0, 2)));
  EXPECT_EQ(store_->Partitions().size(), partitions - 1);
  EXPECT_EQ(store_->stats().removed_damaged, 0u);
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 2)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), bytes);
  const auto again = FetchRows(*store_, manifest_, 0, {0, FirstRow(2)});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, Rows(0, {0, FirstRow(2)}));
}

TEST_P(LocalStoreContract, DamageFoundByAReadOfAllDropsItToo) {
  Open();
  PutAll(0);
  ASSERT_TRUE(DamageRow(dir_.File("store"), Rows(0, {FirstRow(2) + 1})));
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0, 2)),
              IsError(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_FALSE(store_->Has(Ref(0, 2)));
  Open();
  EXPECT_FALSE(store_->Has(Ref(0, 2)));
  EXPECT_TRUE(store_->Has(Ref(0, 1)));
}

// All of them find it; one drops it.
TEST_P(LocalStoreContract, DamageIsFoundByManyAtOnce) {
  Open();
  PutAll(0);
  ASSERT_TRUE(DamageRow(dir_.File("store"), Rows(0, {FirstRow(2)})));
  std::vector<OutFetch> fetches;
  for (int i = 0; i < 20; ++i) {
    fetches.push_back(StartFetch(*store_, manifest_, 0, {FirstRow(2)}));
  }
  for (OutFetch& fetch : fetches) EXPECT_FALSE(fetch.Wait().ok());
  EXPECT_EQ(store_->stats().dropped_damaged, 1u);
  EXPECT_EQ(store_->stats().partitions, 6u);
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 2)), IsOk());
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(2)}), IsOk());
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_DISK_CONTRACT_H_
