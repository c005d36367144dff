// Copies that cannot be put or removed for a moment, as a read is just dropping
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/table_server/loading/tiered_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using BusyStoreTest = TieredStoreFixture;

TEST_F(BusyStoreTest, WhatIsReadFromASourceIsPutOnceItCanBe) {
  for (const uint64_t in_memory : {0, 1}) {
    StartWith(in_memory);
    local_.AbortChanges(3);
    const uint64_t puts = local_.puts();
    const int reads = source_.reads;
    const PartitionRef ref = Ref(static_cast<uint32_t>(in_memory));
    ASSERT_THAT(Load(ref), IsOk());
    EXPECT_EQ(local_.puts(), puts + 4);
    EXPECT_EQ(source_.reads, reads + 1);
    EXPECT_TRUE(local_.Has(ref));
    EXPECT_EQ(store_->stats().unkept_partitions, 0U);
  }
}

TEST_F(BusyStoreTest, WhatMakesRoomIsRemovedOnceItCanBe) {
  StartWith(0);
  local_.SetCapacity(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  store_->Free(Ref(0));
  bool first = true;
  local_.OnRemove([&](const PartitionRef&) {
    if (first) local_.AbortChanges(2);
    first = false;
  });
  ASSERT_THAT(Load(Ref(1)), IsOk());
  EXPECT_THAT(local_.Partitions(), ElementsAre(Ref(1)));
}

TEST_F(BusyStoreTest, WhatIsFoundDamagedInALoadIsReplacedOnceItCanBe) {
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  store_->Free(Ref(0));
  local_.Damage(Ref(0));
  local_.AbortChanges(2);
  const int reads = source_.reads;
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(source_.reads, reads + 1);
  EXPECT_TRUE(local_.Has(Ref(0)));
  EXPECT_EQ(damaged_->List().size(), 0U);
  EXPECT_EQ(store_->stats().unkept_partitions, 0U);
}

TEST_F(BusyStoreTest, IsNotWaitedForForEver) {
  Start({.max_host_bytes = 0,
         .copies = {.longest_wait = absl::Milliseconds(500)}});
  local_.AbortChanges(std::numeric_limits<int>::max());
  EXPECT_THAT(Load(Ref(0)), IsError(absl::StatusCode::kUnavailable,
                                    HasSubstr("being dropped")));
  EXPECT_GT(local_.puts(), 1U);
  local_.AbortChanges(0);
  EXPECT_THAT(Load(Ref(0)), IsOk());
}

}  // namespace
}  // namespace engram::test
