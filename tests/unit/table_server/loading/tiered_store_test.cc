#include "table_server/loading/tiered_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/unit/table_server/loading/tiered_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using TieredStoreTest = TieredStoreFixture;

TEST_F(TieredStoreTest, FillsMemoryThenTheRestIsCold) {
  StartWith(2);
  for (uint32_t p = 0; p < 4; ++p) ASSERT_THAT(Load(Ref(p)), IsOk());
  EXPECT_FALSE(IsCold(0));
  EXPECT_FALSE(IsCold(1));
  EXPECT_TRUE(IsCold(2));
  EXPECT_TRUE(IsCold(3));
  for (uint32_t p = 0; p < 4; ++p) ExpectServed(p);
  EXPECT_EQ(local_.Partitions().size(), 4U);
  const TieredStore::Stats stats = store_->stats();
  EXPECT_EQ(stats.host_bytes, 2 * SlotBytes());
  EXPECT_EQ(stats.max_host_bytes, 2 * SlotBytes());
  EXPECT_EQ(stats.cold_partitions, 2U);
  EXPECT_EQ(stats.cold_bytes, 2 * store_->BytesToLoad(Ref(0)));
}

TEST_F(TieredStoreTest, ARestartNeedsNoSource) {
  StartWith(1);
  for (uint32_t p = 0; p < 3; ++p) ASSERT_THAT(Load(Ref(p)), IsOk());
  source_.fault = absl::NotFoundError("the network is away");
  StartWith(1);
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < 3; ++p) {
    EXPECT_THAT(store_->Load(Ref(p),
                             [&](size_t more) {
                               bytes += more;
                               return absl::OkStatus();
                             }),
                IsOk());
    ExpectServed(p);
  }
  EXPECT_EQ(source_.reads, 3);
  EXPECT_EQ(local_.reads(), 1U);                  // what is cold is not read
  EXPECT_EQ(bytes, store_->BytesToLoad(Ref(0)));  // nor told as read
  EXPECT_THAT(Load(Ref(3)),
              IsError(absl::StatusCode::kNotFound, HasSubstr("network")));
}

TEST_F(TieredStoreTest, RoomInMemoryIsUsedAgain) {
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ASSERT_THAT(Load(Ref(1)), IsOk());
  store_->Free(Ref(0));
  EXPECT_EQ(store_->stats().host_bytes, 0U);
  store_->Free(Ref(1));
  EXPECT_EQ(store_->stats().cold_partitions, 0U);
  EXPECT_EQ(store_->stats().cold_bytes, 0U);
  ASSERT_THAT(Load(Ref(1)), IsOk());
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_FALSE(IsCold(1));
  EXPECT_TRUE(IsCold(0));
  ExpectServed(0);
  ExpectServed(1);
  EXPECT_EQ(source_.reads, 2);  // both were in the store
}

TEST_F(TieredStoreTest, AFailedLoadLeavesNothing) {
  StartWith(1);
  source_.fault = absl::UnavailableError("gone");
  EXPECT_THAT(Load(Ref(0)), IsError(absl::StatusCode::kUnavailable,
                                    AllOf(HasSubstr("partition 0"),
                                          HasSubstr("the source"))));
  EXPECT_EQ(store_->stats().host_bytes, 0U);
  EXPECT_EQ(tier_->memory_bytes(), 0U);
  source_.fault = absl::OkStatus();
  ASSERT_THAT(Load(Ref(0)), IsOk());
  local_.FailPuts(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(Load(Ref(1)),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("partition 1"), HasSubstr("full"))));
  EXPECT_EQ(store_->stats().cold_partitions, 0U);
  local_.FailPuts(absl::OkStatus());
  ASSERT_THAT(Load(Ref(1)), IsOk());
  ExpectServed(1);
}

TEST_F(TieredStoreTest, ManyThreadsLoadAndFree) {
  StartWith(3);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (uint32_t p = t; p < 12; p += 4) EXPECT_THAT(Load(Ref(p)), IsOk());
        for (uint32_t p = t; p < 12; p += 4) ExpectServed(p);
        for (uint32_t p = t; p < 12; p += 4) store_->Free(Ref(p));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->stats().host_bytes, 0U);
  EXPECT_EQ(store_->stats().cold_partitions, 0U);
  EXPECT_EQ(source_.reads, 12);
}

}  // namespace
}  // namespace engram::test
