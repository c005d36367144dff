#include "engram_client/plan/check_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/wire/error_detail.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

TableInfo Table() {
  TableInfo table;
  table.version = "v1";
  table.row_format.width = 32;
  table.row_format.block_size = 32;
  table.partition_rows = 16;
  table.layers = {{LayerId{1}, 100, 7}, {LayerId{14}, 50, 4}};
  return table;
}

class CheckGatherTest : public ::testing::Test {
 protected:
  absl::Status Check(LayerId layer, std::vector<RowId> rows) {
    std::vector<std::byte> out(rows.size() * 33);
    return CheckGather(table_, {{layer, rows, absl::MakeSpan(out)}});
  }

  const TableInfo table_ = Table();
};

TEST_F(CheckGatherTest, TakesRowsUpToTheLast) {
  EXPECT_TRUE(Check(LayerId{1}, {0, 99, 99}).ok());
  EXPECT_TRUE(Check(LayerId{14}, {49}).ok());
  EXPECT_TRUE(Check(LayerId{14}, {}).ok());
  EXPECT_TRUE(CheckGather(table_, {}).ok());
}

TEST_F(CheckGatherTest, NamesARowOutOfRange) {
  const absl::Status status = Check(LayerId{14}, {3, 50, 51});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kRowOutOfRange);
  EXPECT_EQ(MetadataOf(status, "row"), "50");
  EXPECT_EQ(MetadataOf(status, "rows"), "50");
  EXPECT_EQ(MetadataOf(status, "layer"), "14");
  EXPECT_THAT(std::string(status.message()), HasSubstr("table v1"));
}

TEST_F(CheckGatherTest, FindsARowOutOfRangeAnywhere) {
  for (size_t bad = 0; bad < 40; ++bad) {
    std::vector<RowId> rows(40, 49);
    rows[bad] = ~RowId{0};
    EXPECT_EQ(MetadataOf(Check(LayerId{14}, rows), "row"), "4294967295");
  }
}

TEST_F(CheckGatherTest, NamesAnUnknownLayer) {
  const absl::Status status = Check(LayerId{2}, {0});
  EXPECT_EQ(ReasonOf(status), ErrorReason::kUnknownLayer);
  EXPECT_EQ(MetadataOf(status, "layer"), "2");
}

TEST_F(CheckGatherTest, RefusesABufferOfAnotherSize) {
  const std::vector<RowId> rows = {1, 2};
  std::vector<std::byte> out(65);
  const absl::Status status =
      CheckGather(table_, {{LayerId{1}, rows, absl::MakeSpan(out)}});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("65"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("66"));
}

TEST_F(CheckGatherTest, RefusesALayerTwice) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      CheckGather(table_, {{LayerId{1}, {}, {}}, {LayerId{1}, {}, {}}})));
}

TEST_F(CheckGatherTest, RefusesMoreRowsThanTheLimit) {
  // Never read: the count alone refuses it.
  const absl::Span<const RowId> rows(nullptr, kMaxRowsPerGather + 1);
  EXPECT_EQ(ReasonOf(CheckGather(table_, {{LayerId{1}, rows, {}}})),
            ErrorReason::kTooLarge);
}

}  // namespace
}  // namespace engram
