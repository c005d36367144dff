// Copies in a local store that are damaged, or cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/table_server/loading/tiered_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DamagedStoreTest = TieredStoreFixture;

TEST_F(DamagedStoreTest, ADamagedCopyIsReplaced) {
  StartWith(2);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ASSERT_THAT(Load(Ref(1)), IsOk());
  local_.Damage(Ref(0));
  // Right by its checksums, and yet another one.
  local_.Replace(Ref(1), SyntheticPartition(manifest_, Ref(2)));
  StartWith(2);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ASSERT_THAT(Load(Ref(1)), IsOk());
  EXPECT_EQ(store_->stats().damaged_copies, 2U);
  EXPECT_EQ(source_.reads, 4);
  StartWith(0);
  for (uint32_t p = 0; p < 2; ++p) {
    ASSERT_THAT(Load(Ref(p)), IsOk());
    ExpectServed(p);
  }
  EXPECT_EQ(source_.reads, 4);
}

TEST_F(DamagedStoreTest, ADamagedCopyThatNobodyReplacesIsGone) {
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  local_.Damage(Ref(0));
  source_.fault = absl::NotFoundError("nobody has it");
  StartWith(1);
  EXPECT_THAT(Load(Ref(0)),
              IsError(absl::StatusCode::kNotFound, HasSubstr("nobody has it")));
  EXPECT_FALSE(local_.Has(Ref(0)));  // it must not become cold
}

TEST_F(DamagedStoreTest, ACopyThatCannotBeReadJustNowStays) {
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  for (const absl::Status& status :
       {absl::UnavailableError("EIO"), absl::InternalError("bug"),
        absl::NotFoundError("ENOENT")}) {
    StartWith(1);
    local_.FailReads(status);
    local_.FailPuts(absl::UnavailableError("EIO"));
    source_.fault = absl::NotFoundError("nobody has it");
    EXPECT_THAT(Load(Ref(0)), IsError(absl::StatusCode::kNotFound,
                                      HasSubstr("nobody has it")));
    EXPECT_TRUE(local_.Has(Ref(0)));
    source_.fault = absl::OkStatus();
    ASSERT_THAT(Load(Ref(0)), IsOk());  // from the source
    EXPECT_TRUE(local_.Has(Ref(0)));
    EXPECT_EQ(store_->stats().damaged_copies, 0U);
    EXPECT_EQ(store_->stats().unkept_partitions, 0U);
  }
  local_.FailReads(absl::OkStatus());
  const int reads = source_.reads;
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(source_.reads, reads);
}

// As a sector of it would not be, for ever.
TEST_F(DamagedStoreTest, ACopyThatCannotBeReadIsReplacedIfItCanBe) {
  StartWith(1);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  StartWith(1);
  local_.FailReads(absl::UnavailableError("EIO"));
  const uint64_t puts = local_.puts();
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(local_.puts(), puts + 1);
}

TEST_F(DamagedStoreTest, AReportOfDamageMakesTheNextLoadAskTheSources) {
  StartWith(0);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  ASSERT_THAT(Load(Ref(1)), IsOk());
  std::vector<PartitionRef> reports;
  damaged_->SetListener(
      [&](const PartitionRef& ref) { reports.push_back(ref); });
  local_.Damage(Ref(0));
  EXPECT_THAT(Serve(0), IsError(absl::StatusCode::kDataLoss, HasSubstr("1")));
  EXPECT_THAT(Serve(0), IsError(absl::StatusCode::kDataLoss, HasSubstr("1")));
  // Told each time: who is told may not have been able to do something.
  EXPECT_THAT(reports, ElementsAre(Ref(0), Ref(0)));
  EXPECT_EQ(store_->stats().damaged_copies, 1U);
  ExpectServed(1);
  store_->Free(Ref(0));
  EXPECT_FALSE(local_.Has(Ref(0)));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(source_.reads, 3);
  ExpectServed(0);
}

// A store may drop what it finds damaged.
TEST_F(DamagedStoreTest, WhatTheStoreHasLostIsReported) {
  StartWith(0);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  std::vector<PartitionRef> reports;
  damaged_->SetListener(
      [&](const PartitionRef& ref) { reports.push_back(ref); });
  ASSERT_THAT(local_.Remove(Ref(0)), IsOk());
  EXPECT_FALSE(Serve(0).ok());
  EXPECT_THAT(reports, ElementsAre(Ref(0)));
}

TEST_F(DamagedStoreTest, ARestartDoesNotRelyOnADamagedCopy) {
  StartWith(0);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  local_.Damage(Ref(0));
  EXPECT_EQ(Serve(0).code(), absl::StatusCode::kDataLoss);
  StartWith(0);  // it was not freed before
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(source_.reads, 2);
  ExpectServed(0);
}

TEST_F(DamagedStoreTest, WhatCannotBeRemovedIsNotReliedOn) {
  StartWith(0);
  ASSERT_THAT(Load(Ref(0)), IsOk());
  local_.Damage(Ref(0));
  local_.FailRemoves(absl::UnavailableError("EROFS"));
  EXPECT_EQ(Serve(0).code(), absl::StatusCode::kDataLoss);
  store_->Free(Ref(0));
  EXPECT_TRUE(local_.Has(Ref(0)));
  source_.fault = absl::NotFoundError("nobody has it");
  EXPECT_EQ(Load(Ref(0)).code(), absl::StatusCode::kNotFound);
  source_.fault = absl::OkStatus();
  ASSERT_THAT(Load(Ref(0)), IsOk());  // replaced
  EXPECT_EQ(source_.reads, 3);
  ExpectServed(0);
  store_->Free(Ref(0));
  ASSERT_THAT(Load(Ref(0)), IsOk());
  EXPECT_EQ(source_.reads, 3);  // and relied on again
}

}  // namespace
}  // namespace engram::test
