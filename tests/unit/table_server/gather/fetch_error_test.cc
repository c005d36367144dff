#include "table_server/gather/fetch_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"
#include "table_server/store/damaged_partition.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FetchErrorTest : public ::testing::Test {
 protected:
  // The first rows of so many partitions of the second layer.
  absl::Status ErrorOf(const absl::Status& status, size_t partitions) const {
    RowFetch fetch{.layer_index = 1};
    std::vector<RowId> rows;
    for (size_t p = 0; p < partitions; ++p) {
      rows.push_back(static_cast<RowId>(p * manifest_.partition_rows()));
      fetch.wanted.push_back(static_cast<uint32_t>(p));
    }
    fetch.row_ids = rows;
    return FetchError(status, NameRows(fetch, manifest_), "s1",
                      absl::Milliseconds(7));
  }

  const Manifest manifest_ = test::TinyManifest();
};

// A replica has the right rows, or the same server has them again soon.
TEST_F(FetchErrorTest, DamageIsUnavailableAndNamesAll) {
  const absl::Status damage = WithDamagedPartition(
      absl::DataLossError("/store/0.rows: page 3 is damaged"),
      {manifest_.layers()[1].layer_id, PartitionId{0}});
  const absl::Status error = ErrorOf(damage, 1);
  EXPECT_THAT(
      error,
      IsError(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("server s1"),
                    HasSubstr(absl::StrCat(
                        "1 rows of layer ",
                        ToInt(manifest_.layers()[1].layer_id), " partition 0")),
                    HasSubstr(manifest_.version()), HasSubstr("DATA_LOSS"),
                    HasSubstr("/store/0.rows: page 3"),
                    Not(HasSubstr("engram/damaged-partition")))));
  EXPECT_EQ(ReasonOf(error), ErrorReason::kNone);
}

TEST_F(FetchErrorTest, NamesTheFirstPartitions) {
  EXPECT_THAT(ErrorOf(absl::InternalError("x"), 6),
              IsError(absl::StatusCode::kUnavailable,
                      HasSubstr(" partitions 0, 1, 2, 3 and others of")));
  EXPECT_THAT(ErrorOf(absl::InternalError("x"), 4),
              IsError(absl::StatusCode::kUnavailable,
                      HasSubstr(" partitions 0, 1, 2, 3 of")));
}

TEST_F(FetchErrorTest, TooMuchToDoIsOverloaded) {
  const absl::Status error = ErrorOf(absl::ResourceExhaustedError("full"), 1);
  EXPECT_EQ(ReasonOf(error), ErrorReason::kOverloaded);
  EXPECT_EQ(RetryAfterOf(error), absl::Milliseconds(7));
}

TEST_F(FetchErrorTest, WhatTheCallerCausedStaysAsItIs) {
  for (const absl::Status& status :
       {absl::CancelledError("c"), absl::DeadlineExceededError("d")}) {
    EXPECT_THAT(ErrorOf(status, 1), IsError(status.code(), HasSubstr("s1")));
  }
}

}  // namespace
}  // namespace engram
