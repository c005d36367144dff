#include "engram_client/ctl/gather_ids.h"

#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/test_file.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::ElementsAre;
using testing::HasSubstr;

// Two layers of 100 and 50 rows; two columns (2-grams and 3-grams, one head).
TableInfo TestTable() {
  TableInfo table;
  table.config.max_ngram_size = 3;
  table.config.n_heads = 1;
  table.layers = {{LayerId{1}, 100, 4}, {LayerId{14}, 50, 2}};
  return table;
}

class GatherIdsTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<RowId>> Read(std::vector<OutputTensor> tensors,
                                          uint32_t layer) {
    return ReadRowIds(MakeFile(dir_, std::move(tensors)), TestTable(),
                      LayerId{layer});
  }

  test::TempDir dir_;
};

TEST_F(GatherIdsTest, ReadsRowIdsWithDuplicates) {
  const std::vector<int64_t> ids = {7, 99, 0, 7};
  EXPECT_THAT(*Read({{{"layers.1.row_ids", "I64", {4}}, BytesOf(ids)}}, 1),
              ElementsAre(7, 99, 0, 7));
}

TEST_F(GatherIdsTest, TakesTheLayersPartOfHashIds) {
  // [B=1, T=2, layers=2, columns=2]
  const std::vector<int64_t> ids = {10, 11, 20, 21, 12, 13, 22, 23};
  const OutputTensor tensor = {{"hash_ids", "I64", {1, 2, 2, 2}}, BytesOf(ids)};
  EXPECT_THAT(*Read({tensor}, 1), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(*Read({tensor}, 14), ElementsAre(20, 21, 22, 23));
}

TEST_F(GatherIdsTest, RefusesOtherIds) {
  const std::vector<int64_t> high = {7, 50};
  const std::vector<int64_t> negative = {-1};
  const std::vector<int64_t> eight(8);
  EXPECT_THAT(
      Read({{{"layers.14.row_ids", "I64", {2}}, BytesOf(high)}}, 14).status(),
      IsError(
          StatusCode::kOutOfRange,
          HasSubstr("row id 50 (number 1) of layer 14, which has 50 rows")));
  EXPECT_THAT(
      Read({{{"layers.1.row_ids", "I64", {1}}, BytesOf(negative)}}, 1).status(),
      IsError(StatusCode::kOutOfRange, HasSubstr("row id -1")));
  EXPECT_THAT(
      Read({{{"layers.1.row_ids", "I64", {2}}, BytesOf(high)}}, 3).status(),
      IsError(StatusCode::kNotFound,
              HasSubstr("no layer 3; its layers are 1, 14")));
  EXPECT_THAT(
      Read({{{"layers.1.row_ids", "I64", {2}}, BytesOf(high)}}, 14).status(),
      IsError(StatusCode::kNotFound,
              HasSubstr(
                  "neither a tensor layers.14.row_ids nor a tensor hash_ids")));
  EXPECT_THAT(
      Read({{{"hash_ids", "I64", {2, 2, 1, 2}}, BytesOf(eight)}}, 1).status(),
      IsError(StatusCode::kInvalidArgument, HasSubstr("not [2, 2, 2, 2]")));
  EXPECT_THAT(
      Read({{{"layers.1.row_ids", "U64", {2}}, BytesOf(high)}}, 1).status(),
      IsError(StatusCode::kInvalidArgument, HasSubstr("is U64, not I64")));
}

}  // namespace
}  // namespace engram::ctl
