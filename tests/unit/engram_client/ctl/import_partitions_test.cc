#include "engram_client/ctl/import_partitions.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/notification.h"
#include "table_server/store/fake_local_store.h"
#include "tests/testing/eventually.h"
#include "tests/unit/engram_client/ctl/made_up_table.h"
#include "tests/unit/table_server/store/store_files_of.h"

namespace engram::ctl {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Counts what is read of another source.
class CountedSource final : public PartitionSource {
 public:
  explicit CountedSource(PartitionSource& source) : source_(source) {}
  std::string description() const override { return source_.description(); }
  absl::Status Read(const PartitionRef& ref, absl::Span<std::byte> out,
                    absl::FunctionRef<absl::Status(size_t)> on_bytes) override {
    const size_t count = ++reads;
    if (on_read) on_read(count);
    return source_.Read(ref, out, on_bytes);
  }
  std::atomic<size_t> reads{0};
  std::function<void(size_t reads)> on_read;  // set between imports

 private:
  PartitionSource& source_;
};

class ImportPartitionsTest : public MadeUpTable {
 protected:
  absl::StatusOr<ImportResult> Import(LocalStore& store, size_t threads = 2) {
    return ImportPartitions(manifest(), counted_, store, MissingIn(store, all_),
                            {.threads = threads});
  }

  CountedSource counted_{*partitions_};
};

class ImportIntoTest : public ImportPartitionsTest,
                       public ::testing::WithParamInterface<const char*> {};

TEST_P(ImportIntoTest, FillsAStore) {
  auto store = OpenStore(GetParam());
  const auto result = Import(*store);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->imported, all_.size());
  EXPECT_EQ(result->imported_bytes, BytesOf(manifest(), all_));
  store.reset();
  store = OpenStore(GetParam());
  EXPECT_EQ(store->Partitions(), all_);
  for (const PartitionRef& ref : all_) {
    EXPECT_EQ(RowsIn(*store, ref), RowsOf(ref));
  }
}

TEST_P(ImportIntoTest, GoesOnWhereAnInterruptedOneEnded) {
  auto store = OpenStore(GetParam());
  // Told to end while the second is read, which waits until that is known.
  bool told = false;
  Notification known;
  counted_.on_read = [&](size_t reads) {
    if (reads == 2) ENGRAM_CHECK(known.WaitUntil(test::Soon()));
  };
  const auto first = ImportPartitions(
      manifest(), counted_, *store, MissingIn(*store, all_),
      {.threads = 1,
       .progress =
           [&](uint64_t, uint64_t) {
             if (told && !known.HasBeenNotified()) known.Notify();
           },
       .interrupted = [&] { return told = counted_.reads >= 2; }});
  ASSERT_THAT(first, IsOk());
  const size_t before = store->Partitions().size();
  EXPECT_EQ(before, 2u);
  EXPECT_EQ(first->imported, before);
  EXPECT_TRUE(first->looked_at.interrupted);
  counted_.on_read = nullptr;
  counted_.reads = 0;
  const auto second = Import(*store);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(counted_.reads, all_.size() - before);
  EXPECT_EQ(store->Partitions(), all_);
  EXPECT_THAT(MissingIn(*store, all_), SizeIs(0));
}

TEST_P(ImportIntoTest, WhatHasNotItsDigestIsNotPut) {
  const PartitionRef damaged = {LayerId{1}, PartitionId{kDamaged}};
  DamageCheckpoint();
  auto store = OpenStore(GetParam());
  EXPECT_THAT(Import(*store, /*threads=*/1),
              IsError(absl::StatusCode::kFailedPrecondition,
                      AllOf(HasSubstr("layer 1 partition 2 from"),
                            HasSubstr("the manifest says"))));
  EXPECT_FALSE(store->Has(damaged));
  EXPECT_THAT(store->Partitions(), SizeIs(kDamaged));  // those before it
}

TEST_P(ImportIntoTest, ReplacesWhatItIsToldToLookAtAndIsDamaged) {
  ASSERT_THAT(Import(*OpenStore(GetParam())), IsOk());
  ASSERT_TRUE(
      test::DamageRow(dir_.File("store"), RowsOf(all_[4]).substr(33 * 7, 33)));
  auto store = OpenStore(GetParam());
  EXPECT_THAT(MissingIn(*store, all_), SizeIs(0));
  counted_.reads = 0;
  const auto result =
      ImportPartitions(manifest(), counted_, *store, all_, {.threads = 2});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->looked_at.partitions, all_.size());
  EXPECT_EQ(result->imported, 1u);
  EXPECT_EQ(result->replaced, 1u);
  EXPECT_EQ(counted_.reads, 1u);
  EXPECT_EQ(RowsIn(*store, all_[4]), RowsOf(all_[4]));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ImportIntoTest,
                         ::testing::Values("flat", "rocksdb"),
                         [](const auto& info) { return info.param; });

TEST_F(ImportPartitionsTest, NamesWhatTheStoreDoesNotTake) {
  FakeLocalStore store(manifest());
  store.SetCapacity(4);
  EXPECT_THAT(Import(store), IsError(absl::StatusCode::kResourceExhausted,
                                     AllOf(HasSubstr("layer 1 partition"),
                                           HasSubstr("to fake store"),
                                           HasSubstr("the store is full"))));
  EXPECT_THAT(store.Partitions(), SizeIs(4));
}

// What no checksum of a store finds.
TEST_F(ImportPartitionsTest, ReplacesOtherRowsThanTheManifests) {
  FakeLocalStore store(manifest());
  ASSERT_THAT(Import(store), IsOk());
  store.Replace(all_[4], std::string(BytesOf(manifest(), all_[4]), 'x'));
  store.SetCapacity(all_.size());
  const auto result =
      ImportPartitions(manifest(), *partitions_, store, all_, {.threads = 2});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->replaced, 1u);
  EXPECT_EQ(RowsIn(store, all_[4]), RowsOf(all_[4]));
}

// A bad sector is written to, and nothing is removed for what may be no more
// than a moment of a disk.
TEST_F(ImportPartitionsTest, ReplacesWhatCannotBeRead) {
  FakeLocalStore store(manifest());
  ASSERT_THAT(Import(store), IsOk());
  store.FailReads(absl::UnavailableError("the disk fails"));
  size_t removed = 0;
  store.OnRemove([&](const PartitionRef&) { ++removed; });
  const auto result =
      ImportPartitions(manifest(), *partitions_, store, all_, {.threads = 1});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->replaced, all_.size());
  EXPECT_EQ(removed, 0u);
}

TEST_F(ImportPartitionsTest, ReplacesWhereThereIsRoomForOneOfThemOnly) {
  uint64_t limit = 0;
  {
    const auto store = OpenStore("flat");
    ASSERT_THAT(Import(*store), IsOk());
    const std::string other(BytesOf(manifest(), all_[4]), 'x');
    ASSERT_THAT(
        store->Put(all_[4], {reinterpret_cast<const std::byte*>(other.data()),
                             other.size()}),
        IsOk());
    limit = store->disk_bytes();
  }
  const auto full =
      OpenLocalStore(manifest(),
                     LocalStorePlace::Parse(StoreOf("flat")).value(),
                     {.max_store_bytes = limit})
          .value();
  const auto result =
      ImportPartitions(manifest(), *partitions_, *full, all_, {.threads = 2});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->replaced, 1u);
  EXPECT_EQ(RowsIn(*full, all_[4]), RowsOf(all_[4]));
}

TEST_F(ImportPartitionsTest, RoomIsAddedUpBeforeAnythingIsWritten) {
  FakeLocalStore store(manifest());
  ASSERT_THAT(
      ImportPartitions(manifest(), *partitions_, store,
                       absl::MakeConstSpan(all_).subspan(0, 3), {.threads = 1}),
      IsOk());
  store.SetOtherVersionBytes(5000);
  const std::vector<PartitionRef> missing = MissingIn(store, all_);
  EXPECT_THAT(missing, SizeIs(all_.size() - 3));
  uint64_t needed = 0;
  for (const PartitionRef& ref : missing) needed += store.DiskBytesOf(ref);
  const uint64_t has = store.disk_bytes();
  const uint64_t limit = needed + has + 5000;

  EXPECT_THAT(CheckRoom(store, missing, 0, needed), IsOk());
  EXPECT_THAT(CheckRoom(store, missing, limit, needed), IsOk());
  EXPECT_THAT(
      CheckRoom(store, missing, 0, needed - 1),
      IsError(absl::StatusCode::kResourceExhausted,
              AllOf(HasSubstr(absl::StrCat(needed, " bytes")),
                    HasSubstr(absl::StrCat(needed - 1, " bytes) free")))));
  EXPECT_THAT(CheckRoom(store, missing, limit - 1, UINT64_MAX),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr(absl::StrCat(needed, " bytes")),
                            HasSubstr(absl::StrCat(has, " bytes) that it has")),
                            HasSubstr("5000 bytes) of other"),
                            HasSubstr(absl::StrCat(limit - 1, " bytes)")))));
  EXPECT_THAT(CheckRoom(store, {}, 0, 0), IsOk());
}

}  // namespace
}  // namespace engram::ctl
