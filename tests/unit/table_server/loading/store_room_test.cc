// What a TieredStore keeps in its local store, and what it gives its place to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "tests/testing/eventually.h"
#include "tests/unit/table_server/loading/tiered_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using StoreRoomTest = TieredStoreFixture;

TEST_F(StoreRoomTest, AStoreThatTakesNothingIsNoObstacleForMemory) {
  StartWith(2);
  local_.FailPuts(absl::InternalError("EIO"));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ExpectServed(0);
  EXPECT_EQ(store_->stats().unkept_partitions, 1U);
  EXPECT_TRUE(local_.Partitions().empty());
}

TEST_F(StoreRoomTest, WhatCouldNotBePutIsTriedAgainLaterAndLater) {
  StartWith(2);
  local_.FailPuts(absl::InternalError("EIO"));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(local_.puts(), 1U);
  store_->Tend();
  EXPECT_EQ(local_.puts(), 1U);  // not yet
  clock_.Advance(absl::Minutes(1));
  store_->Tend();
  store_->Tend();
  EXPECT_EQ(local_.puts(), 2U);
  clock_.Advance(absl::Minutes(1));
  store_->Tend();
  EXPECT_EQ(local_.puts(), 2U);  // twice as long
  local_.FailPuts(absl::OkStatus());
  clock_.Advance(absl::Minutes(1));
  store_->Tend();
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(0)));
  EXPECT_EQ(store_->stats().unkept_partitions, 0U);
  clock_.Advance(absl::Hours(5));
  store_->Tend();
  EXPECT_EQ(local_.puts(), 3U);
  StartWith(0);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ExpectServed(0);  // from what was put
}

TEST_F(StoreRoomTest, WhatIsFreedIsNotTriedAgain) {
  StartWith(2);
  local_.FailPuts(absl::InternalError("EIO"));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  store_->Free(Ref(0));
  EXPECT_EQ(store_->stats().unkept_partitions, 0U);
  clock_.Advance(absl::Hours(5));
  store_->Tend();
  EXPECT_EQ(local_.puts(), 1U);
}

// The rows are read until the copy is there, or is not.
TEST_F(StoreRoomTest, WhatIsFreedWhileItIsTriedAgainIsFreedThen) {
  StartWith(1);
  local_.FailPuts(absl::InternalError("EIO"));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  local_.FailPuts(absl::OkStatus());
  clock_.Advance(absl::Minutes(1));
  Notification putting;
  Notification go_on;
  local_.OnPut([&](const PartitionRef&) {
    putting.Notify();
    go_on.Wait();
  });
  std::thread tending([&] { store_->Tend(); });
  putting.Wait();
  store_->Free(Ref(0));
  EXPECT_FALSE(IsCold(0));  // its memory is there
  EXPECT_THAT(Load(Ref(0)),
              IsError(absl::StatusCode::kUnavailable, HasSubstr("being put")));
  go_on.Notify();
  tending.join();
  EXPECT_EQ(tier_->memory_bytes(), 0U);
  EXPECT_EQ(store_->stats().host_bytes, 0U);
  EXPECT_TRUE(local_.Has(Ref(0)));
  local_.OnPut(nullptr);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ExpectServed(0);
  EXPECT_EQ(source_.reads, 1);
}

// It is the disk's fault: nothing is wrong with the checkpoint.
TEST_F(StoreRoomTest, WhatAStoreSaysIsNotFatal) {
  StartWith(0);
  for (const absl::Status& status :
       {absl::DataLossError("corruption"), absl::FailedPreconditionError("x"),
        absl::InternalError("y")}) {
    local_.FailPuts(status);
    EXPECT_THAT(Load(Ref(0)), IsError(absl::StatusCode::kUnavailable,
                                      HasSubstr(status.message())));
  }
  local_.FailPuts(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(Load(Ref(0)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StoreRoomTest, WhatNobodyWantsMakesRoom) {
  StartWith(0);
  local_.SetCapacity(3);
  const std::vector<PartitionRef> first = {Ref(0), Ref(1), Ref(2)};
  ASSERT_THAT(store_->CheckFits(first), IsOk());
  for (uint32_t p = 0; p < 3; ++p) ASSERT_THAT(Load(Ref(p)), IsOk());
  store_->Free(Ref(1));
  // Still wanted, and so it stays.
  EXPECT_THAT(Load(Ref(3)),
              IsError(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  const std::vector<PartitionRef> second = {Ref(2), Ref(3)};
  ASSERT_THAT(store_->CheckFits(second), IsOk());
  ASSERT_THAT(Load(Ref(3)), IsOk());
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(0), Ref(2), Ref(3)));
  // In use, though not wanted.
  EXPECT_THAT(Load(Ref(1)),
              IsError(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  store_->Free(Ref(0));
  ASSERT_THAT(Load(Ref(1)), IsOk());
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(1), Ref(2), Ref(3)));
}

// Memory has what they are copies of; what is cold is nowhere else.
TEST_F(StoreRoomTest, CopiesOfWhatIsInMemoryMakeRoomForWhatIsCold) {
  StartWith(2);
  local_.SetCapacity(2);
  const std::vector<PartitionRef> all = {Ref(0), Ref(1), Ref(2), Ref(3)};
  ASSERT_THAT(store_->CheckFits(all), IsOk());
  for (uint32_t p = 0; p < 4; ++p) ASSERT_THAT(Load(Ref(p)), IsOk());
  EXPECT_FALSE(IsCold(1));
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(2), Ref(3)));
  for (uint32_t p = 0; p < 4; ++p) ExpectServed(p);
  EXPECT_EQ(store_->stats().unkept_partitions, 2U);
  // They make none for each other, nor for what is in memory.
  EXPECT_THAT(Load(Ref(4)),
              IsError(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  clock_.Advance(absl::Minutes(2));
  store_->Tend();
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(2), Ref(3)));
  // They are put again when there is room.
  local_.SetCapacity(4);
  clock_.Advance(absl::Hours(2));
  store_->Tend();
  store_->Tend();
  EXPECT_EQ(local_.Partitions().size(), 4U);
  EXPECT_EQ(store_->stats().unkept_partitions, 0U);
}

// Two loads need room at once, and one finds what to remove.
TEST_F(StoreRoomTest, ALoadWaitsForWhatAnotherIsRemoving) {
  StartWith(0);
  local_.SetCapacity(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  store_->Free(Ref(0));
  Notification removing;
  Notification go_on;
  local_.OnRemove([&](const PartitionRef&) {
    removing.Notify();
    go_on.Wait();
  });
  std::thread first([&] { EXPECT_THAT(Load(Ref(1)), IsOk()); });
  removing.Wait();
  const uint64_t puts = local_.puts();
  std::thread second([&] { EXPECT_THAT(Load(Ref(2)), IsOk()); });
  EXPECT_TRUE(Eventually([&] { return local_.puts() != puts; }));
  local_.SetCapacity(2);
  go_on.Notify();
  first.join();
  second.join();
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(1), Ref(2)));
}

TEST_F(StoreRoomTest, AShareThatFitsNowhereIsRefusedWithTheSums) {
  Start({});
  const std::vector<PartitionRef> all = AllPartitions(manifest_);
  uint64_t bytes = 0;
  for (const PartitionRef& ref : all) bytes += local_.DiskBytesOf(ref);
  EXPECT_THAT(store_->CheckFits(all), IsOk());
  Start({.max_store_bytes = bytes});
  EXPECT_THAT(store_->CheckFits(all), IsOk());
  Start({.max_store_bytes = bytes - 1});
  EXPECT_THAT(
      store_->CheckFits(all),
      IsError(absl::StatusCode::kResourceExhausted,
              AllOf(HasSubstr("fake store"), HasSubstr(std::to_string(bytes)),
                    HasSubstr(std::to_string(bytes - 1)))));
  // Other table versions take of the same room.
  local_.SetOtherVersionBytes(77);
  Start({.max_store_bytes = bytes + 76});
  EXPECT_THAT(store_->CheckFits(all),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("77 bytes) taken by other"),
                            HasSubstr(std::to_string(bytes + 76)))));
  Start({.max_store_bytes = bytes + 77});
  EXPECT_THAT(store_->CheckFits(all), IsOk());
  constexpr uint64_t kMiB = 1 << 20;
  // 256 MiB are for everything else.
  Start({.available = {300 * kMiB, "a test"},
         .max_host_bytes = kMuch,
         .cache_bytes = 40 * kMiB,
         .max_bytes_in_flight = 5 * kMiB});
  EXPECT_THAT(store_->CheckFits(all),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("41.9 MB for the row cache"),
                            HasSubstr("rows kept whole in memory"),
                            HasSubstr("a test"))));
  Start({.available = {300 * kMiB, "a test"},
         .max_host_bytes = 0,
         .cache_bytes = 10 * kMiB,
         .max_bytes_in_flight = 5 * kMiB});
  EXPECT_THAT(store_->CheckFits(all), IsOk());
}

TEST_F(StoreRoomTest, TheMemoryOfTheStoreIsInTheSums) {
  constexpr uint64_t kMiB = 1 << 20;
  local_.SetMemoryBytesOfOne(kMiB);
  const std::vector<PartitionRef> all = AllPartitions(manifest_);
  Start({.available = {(256 + all.size() + 10) * kMiB, "a test"}});
  EXPECT_EQ(store_->stats().max_host_bytes,
            10 * kMiB - store_->BytesToLoad(Ref(0)));
  EXPECT_THAT(store_->CheckFits(all), IsOk());
  // What nobody wants is open too until it makes room.
  ASSERT_THAT(Load(Ref(0)), IsOk());
  const std::vector<PartitionRef> wanted = {Ref(1), Ref(2)};
  const uint64_t needed = (256 + 3) * kMiB + store_->BytesToLoad(Ref(0));
  Start({.available = {needed, "a test"}, .max_host_bytes = 0});
  EXPECT_THAT(store_->CheckFits(wanted), IsOk());
  Start({.available = {needed - 1, "a test"}, .max_host_bytes = 0});
  EXPECT_THAT(store_->CheckFits(wanted),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("3.1 MB for the index of the local store")));
}

TEST_F(StoreRoomTest, WithoutALimitRowsTakeWhatMemoryLeaves) {
  constexpr uint64_t kMiB = 1 << 20;
  Start({.available = {300 * kMiB, "a test"},
         .cache_bytes = 10 * kMiB,
         .max_bytes_in_flight = 5 * kMiB,
         .load_threads = 3});
  EXPECT_EQ(store_->stats().max_host_bytes,
            (300 - 256 - 10 - 5) * kMiB - 3 * store_->BytesToLoad(Ref(0)));
  Start({.available = {100 * kMiB, "a test"}});
  EXPECT_EQ(store_->stats().max_host_bytes, 0U);
}

}  // namespace
}  // namespace engram::test
