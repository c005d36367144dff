#include "table_server/gather/partition_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "core/wire/error_detail.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PartitionReaderTest : public ::testing::Test {
 protected:
  PartitionReaderTest() { partitions_.Add(1, ref_.partition); }

  // Rows [first, first + count) of ref_.
  std::string Rows(uint64_t first, uint64_t count) const {
    std::vector<RowId> ids(count);
    std::iota(ids.begin(), ids.end(),
              static_cast<RowId>(3 * manifest_.partition_rows() + first));
    return test::SyntheticRows(manifest_, ref_.layer, ids);
  }
  std::string Copy(RowRange& range, uint64_t count) const {
    std::string rows(count * row_bytes_, '\xEE');
    const auto missed = reader_.Copy(
        range,
        absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size()));
    EXPECT_THAT(missed, IsOk());
    EXPECT_TRUE(missed->empty());
    return rows;
  }

  const Manifest manifest_ = test::TinyManifest();
  const size_t row_bytes_ = manifest_.row_format().row_bytes();
  const PartitionRef ref_{manifest_.layers()[1].layer_id, PartitionId{3}};
  const uint64_t row_count_ = manifest_.RowsIn(1, ref_.partition);
  PartitionSet partitions_{manifest_};
  const SyntheticTier tier_{manifest_, test::kTestSeed};
  const PartitionReader reader_{
      manifest_, partitions_, tier_, {.server_name = "s1"}};
};

TEST_F(PartitionReaderTest, ReadsEveryRowInOrder) {
  auto range = reader_.Check(manifest_.version(), ref_, 0);
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(range->size(), row_count_);
  EXPECT_EQ(Copy(*range, 1), Rows(0, 1));
  EXPECT_EQ(Copy(*range, row_count_ - 1), Rows(1, row_count_ - 1));
  EXPECT_EQ(range->size(), 0U);
}

TEST_F(PartitionReaderTest, GoesOnFromAnOffset) {
  auto range = reader_.Check("", ref_, 5 * row_bytes_);
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(range->size(), row_count_ - 5);
  EXPECT_EQ(Copy(*range, 2), Rows(5, 2));
  const auto end = reader_.Check("", ref_, row_count_ * row_bytes_);
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(end->size(), 0U);
}

TEST_F(PartitionReaderTest, TheLastPartitionMayBeShort) {
  const uint32_t last = manifest_.partition_count(1) - 1;
  partitions_.Add(1, PartitionId{last});
  const auto range = reader_.Check("", {ref_.layer, PartitionId{last}}, 0);
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(range->end_row, manifest_.layers()[1].row_count);
}

TEST_F(PartitionReaderTest, ChecksTheRequest) {
  EXPECT_EQ(ReasonOf(reader_.Check("other", ref_, 0).status()),
            ErrorReason::kWrongTable);
  EXPECT_EQ(
      ReasonOf(reader_.Check("", {LayerId{3}, PartitionId{0}}, 0).status()),
      ErrorReason::kUnknownLayer);
  EXPECT_THAT(reader_.Check("", {ref_.layer, PartitionId{4096}}, 0),
              IsError(absl::StatusCode::kOutOfRange, HasSubstr("4096")));
  EXPECT_THAT(reader_.Check("", ref_, (row_count_ + 1) * row_bytes_),
              IsError(absl::StatusCode::kOutOfRange,
                      HasSubstr(std::to_string(row_count_ * row_bytes_))));
  EXPECT_THAT(reader_.Check("", ref_, 1),
              IsError(absl::StatusCode::kInvalidArgument,
                      AllOf(HasSubstr("offset 1"),
                            HasSubstr(std::to_string(row_bytes_)))));
  const PartitionRef other{ref_.layer, PartitionId{0}};
  const absl::Status absent = reader_.Check("", other, 0).status();
  EXPECT_EQ(ReasonOf(absent), ErrorReason::kPartitionNotHere);
  EXPECT_EQ(MetadataOf(absent, "server"), "s1");
  EXPECT_THAT(MissingPartitionsOf(absent), ElementsAre(other));
}

TEST_F(PartitionReaderTest, EndsWhereAPartitionIsGivenUp) {
  auto range = reader_.Check("", ref_, 0);
  ASSERT_THAT(range, IsOk());
  partitions_.Withdraw(1, ref_.partition);
  EXPECT_EQ(Copy(*range, 1), Rows(0, 1));
  const LeaseEpochs::Mark mark = partitions_.Drop(1, ref_.partition);
  // Between two copies nothing keeps the memory.
  EXPECT_TRUE(partitions_.WaitUntilLeasesEnded(mark, absl::InfiniteFuture()));
  std::vector<std::byte> out(row_bytes_);
  EXPECT_EQ(ReasonOf(reader_.Copy(*range, absl::MakeSpan(out)).status()),
            ErrorReason::kPartitionNotHere);
  EXPECT_EQ(range->size(), row_count_ - 1);
}

}  // namespace
}  // namespace engram
