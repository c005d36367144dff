#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_CONTRACT_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_CONTRACT_H_

// What every LocalStore has to do: include this, local_store_fetch_contract.h,
// local_store_disk_contract.h and local_store_read_only_contract.h in one test
// file and INSTANTIATE_TEST_SUITE_P(..., LocalStoreContract,
// Values(StoreKind{...})).

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/store/store_rows.h"

namespace engram::test {

struct StoreSetup {
  std::string dir;
  uint64_t max_bytes = 0;
  size_t max_queued = 65536;
  bool remove_other_versions = false;
  bool read_only = false;
};

struct StoreKind {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<LocalStore>>(const Manifest&,
                                                            const StoreSetup&)>
      open;
  // Where it keeps manifests, by its directory.
  std::function<std::string(const std::string& dir)> manifests;
};

inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) {
  return out << kind.name;
}

class LocalStoreContract : public ::testing::TestWithParam<StoreKind> {
 protected:
  void Open() { Open({}); }
  void Open(StoreSetup setup) {
    store_.reset();
    setup.dir = dir_.File("store");
    auto store = GetParam().open(manifest_, setup);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  PartitionRef Ref(size_t layer_index, uint32_t partition) const {
    return {manifest_.layers()[layer_index].layer_id, PartitionId{partition}};
  }
  RowId FirstRow(uint32_t partition) const {
    return static_cast<RowId>(partition * manifest_.partition_rows());
  }
  uint32_t LastPartition(size_t layer_index) const {
    return manifest_.partition_count(layer_index) - 1;
  }
  std::string Rows(size_t layer_index, const std::vector<RowId>& rows) const {
    return MadeRows(manifest_, manifest_.layers()[layer_index].layer_id, rows);
  }
  void PutAll(size_t layer_index) {
    for (uint32_t p = 0; p <= LastPartition(layer_index); ++p) {
      ASSERT_THAT(PutMade(*store_, manifest_, Ref(layer_index, p)), IsOk());
    }
  }

  const Manifest& manifest_ = SmallManifest();
  const TempDir dir_;
  std::unique_ptr<LocalStore> store_;
};

TEST_P(LocalStoreContract, StartsEmpty) {
  Open();
  EXPECT_THAT(store_->description(), ::testing::HasSubstr(dir_.path()));
  EXPECT_THAT(store_->Partitions(), ::testing::IsEmpty());
  EXPECT_FALSE(store_->Has(Ref(0, 0)));
  EXPECT_FALSE(store_->Has({LayerId{99}, PartitionId{0}}));
  EXPECT_EQ(store_->stats().partitions, 0u);
}

TEST_P(LocalStoreContract, GivesPartitionsAsTheyWerePut) {
  Open();
  const std::vector<PartitionRef> refs = {Ref(0, 0), Ref(0, 2),
                                          Ref(0, LastPartition(0)), Ref(1, 1),
                                          Ref(1, LastPartition(1))};
  for (const PartitionRef& ref : refs) {
    ASSERT_THAT(PutMade(*store_, manifest_, ref), IsOk());
  }
  EXPECT_EQ(store_->Partitions(), refs);
  for (const PartitionRef& ref : refs) {
    EXPECT_TRUE(store_->Has(ref));
    const auto rows = ReadPartition(*store_, manifest_, ref);
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(*rows, MadePartition(manifest_, ref));
  }
  EXPECT_FALSE(store_->Has(Ref(0, 1)));
  EXPECT_EQ(store_->stats().puts, refs.size());
  EXPECT_EQ(store_->stats().partitions, refs.size());
}

TEST_P(LocalStoreContract, KeepsEverythingUntilItIsOpenedAgain) {
  Open();
  PutAll(0);
  ASSERT_THAT(store_->Remove(Ref(0, 1)), IsOk());
  const std::vector<PartitionRef> refs = store_->Partitions();
  Open();
  EXPECT_EQ(store_->Partitions(), refs);
  EXPECT_GT(store_->disk_bytes(), 0u);
  const std::vector<RowId> rows = {0, FirstRow(2), FirstRow(3) + 1};
  const auto got = FetchRows(*store_, manifest_, 0, rows);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, Rows(0, rows));
  for (const PartitionRef& ref : refs) {
    const auto whole = ReadPartition(*store_, manifest_, ref);
    ASSERT_THAT(whole, IsOk());
    EXPECT_EQ(*whole, MadePartition(manifest_, ref));
  }
}

TEST_P(LocalStoreContract, RemovesPartitions) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 1)), IsOk());
  ASSERT_THAT(store_->Remove(Ref(0, 0)), IsOk());
  ASSERT_THAT(store_->Remove(Ref(0, 0)), IsOk());
  EXPECT_FALSE(store_->Has(Ref(0, 0)));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(1), 0}),
              IsError(absl::StatusCode::kNotFound,
                      ::testing::HasSubstr("partition 0 of layer 1")));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(1)}), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  const auto again = FetchRows(*store_, manifest_, 0, {0});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, Rows(0, {0}));
}

TEST_P(LocalStoreContract, PutReplaces) {
  Open();
  const PartitionRef ref = Ref(0, 0);
  const std::string rows = MadePartition(manifest_, ref);
  ASSERT_THAT(store_->Put(ref, BytesOf(std::string(rows.size(), 'a'))), IsOk());
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {0}), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  ASSERT_THAT(store_->Put(ref, BytesOf(rows)), IsOk());
  const auto got = FetchRows(*store_, manifest_, 0, {0, 5});
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, Rows(0, {0, 5}));
  const auto whole = ReadPartition(*store_, manifest_, ref);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(*whole, rows);
  EXPECT_LE(store_->disk_bytes(), bytes);
  EXPECT_EQ(store_->stats().partitions, 1u);
}

TEST_P(LocalStoreContract, RefusesMoreThanItsLimit) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  Open({.max_bytes = bytes * 5 / 2});
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 1)), IsOk());
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(0, 2)),
              IsError(absl::StatusCode::kResourceExhausted,
                      ::testing::HasSubstr(absl::StrCat(bytes * 5 / 2))));
  EXPECT_FALSE(store_->Has(Ref(0, 2)));
  EXPECT_EQ(store_->stats().full_puts, 1u);
  EXPECT_LE(store_->disk_bytes(), bytes * 5 / 2);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), IsOk());
}

TEST_P(LocalStoreContract, FitsIntoWhatItSaysThatPartitionsTake) {
  Open();
  const std::vector<PartitionRef> refs = {Ref(0, 0), Ref(0, LastPartition(0)),
                                          Ref(1, 1)};
  uint64_t told = 0;
  for (const PartitionRef& ref : refs) told += store_->DiskBytesOf(ref);
  Open({.max_bytes = told});
  for (const PartitionRef& ref : refs) {
    EXPECT_THAT(PutMade(*store_, manifest_, ref), IsOk());
  }
  EXPECT_LE(store_->disk_bytes(), told);
  EXPECT_GE(store_->disk_bytes(), told / 2);
}

TEST_P(LocalStoreContract, NamesWhatIsNotThere) {
  Open();
  EXPECT_THAT(
      ReadPartition(*store_, manifest_, Ref(0, 3)),
      IsError(absl::StatusCode::kNotFound, ::testing::HasSubstr(dir_.path())));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(3)}),
              IsError(absl::StatusCode::kNotFound,
                      ::testing::HasSubstr("partition 3 of layer 1")));
  const uint64_t rows = manifest_.layers()[0].row_count;
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {static_cast<RowId>(rows)}),
              IsError(absl::StatusCode::kNotFound,
                      ::testing::HasSubstr(absl::StrCat("row ", rows))));
}

TEST_P(LocalStoreContract, RefusesASecondOwnerOfItsDirectory) {
  Open();
  EXPECT_THAT(GetParam().open(manifest_, {.dir = dir_.File("store")}),
              IsError(absl::StatusCode::kFailedPrecondition,
                      ::testing::HasSubstr(dir_.path())));
}

TEST_P(LocalStoreContract, ReadEndsWhenItIsTold) {
  Open();
  const PartitionRef ref = Ref(0, 0);
  ASSERT_THAT(PutMade(*store_, manifest_, ref), IsOk());
  std::string out = MadePartition(manifest_, ref);
  const absl::Status status = store_->Read(
      ref, absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()), out.size()),
      [](size_t) { return absl::CancelledError("enough"); });
  EXPECT_THAT(status, IsError(absl::StatusCode::kCancelled, "enough"));
  EXPECT_EQ(store_->stats().read_errors, 0u);
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_CONTRACT_H_
