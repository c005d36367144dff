#include "table_server/store/flat_page.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

FlatHeader V41Header() {
  return {.version = std::string(64, 'a'),
          .ref = {LayerId{14}, PartitionId{3}},
          .row_bytes = 264,
          .rows = 65536};
}

std::vector<std::byte> Written(const FlatHeader& header) {
  std::vector<std::byte> page(kFlatHeaderBytes, std::byte{0xEE});
  WriteFlatHeader(header, absl::MakeSpan(page));
  return page;
}

TEST(FlatPageTest, RowsOfV41FillTheirPages) {
  const FlatHeader header = V41Header();
  EXPECT_EQ(header.page_bytes(), 4096u);
  EXPECT_EQ(header.rows_per_page(), 15u);
  EXPECT_EQ(header.page_count(), 4370u);
  EXPECT_EQ(header.file_bytes(), 4096u * 4371);
  EXPECT_EQ(header.RowsIn(4368), 15u);
  EXPECT_EQ(header.RowsIn(4369), 1u);
  EXPECT_EQ(header.RowsIn(4370), 0u);
}

TEST(FlatPageTest, PagesGrowWithTheRow) {
  EXPECT_EQ(FlatPageBytes(1), 4096u);
  EXPECT_EQ(FlatPageBytes(4088), 4096u);
  EXPECT_EQ(FlatPageBytes(4089), 8192u);
  EXPECT_EQ(FlatPageBytes(kMaxFlatRowBytes), kMaxFlatRowBytes + 4096);
  FlatHeader header = V41Header();
  header.row_bytes = 4089;
  EXPECT_EQ(header.rows_per_page(), 2u);
  EXPECT_EQ(header.OffsetOf(2), 4096u + 2 * 8192);
}

TEST(FlatPageTest, HeaderIsReadAsItWasWritten) {
  const auto read = ParseFlatHeader(Written(V41Header()));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, V41Header());
}

TEST(FlatPageTest, NoByteOfAHeaderMayDiffer) {
  const std::vector<std::byte> page = Written(V41Header());
  for (size_t at = 0; at < page.size(); ++at) {
    std::vector<std::byte> other = page;
    other[at] ^= std::byte{0x10};
    ASSERT_THAT(ParseFlatHeader(other), IsError(kDataLoss, ::testing::_)) << at;
  }
}

TEST(FlatPageTest, PageIsCheckedForItsPlaceToo) {
  const std::string version(64, 'a');
  const PartitionRef ref = {LayerId{1}, PartitionId{2}};
  std::vector<std::byte> page(4096, std::byte{7});
  FlatSeal(version, ref).Close(5, absl::MakeSpan(page));
  EXPECT_THAT(FlatSeal(version, ref).Check(5, page), IsOk());
  EXPECT_THAT(FlatSeal(version, ref).Check(6, page),
              IsError(kDataLoss, HasSubstr("page 6 says that it is page 5")));
  const auto is_other = IsError(kDataLoss, HasSubstr("page 5"));
  EXPECT_THAT(FlatSeal(std::string(64, 'b'), ref).Check(5, page), is_other);
  EXPECT_THAT(FlatSeal(version, {LayerId{2}, PartitionId{2}}).Check(5, page),
              is_other);
  EXPECT_THAT(FlatSeal(version, {LayerId{1}, PartitionId{1}}).Check(5, page),
              is_other);
}

TEST(FlatPageTest, NoByteOfAPageMayDiffer) {
  const FlatSeal seal(std::string(64, 'a'), {LayerId{1}, PartitionId{2}});
  std::vector<std::byte> page(4096, std::byte{7});
  seal.Close(5, absl::MakeSpan(page));
  for (std::byte& byte : page) {
    byte ^= std::byte{1};
    ASSERT_FALSE(seal.Check(5, page).ok()) << &byte - page.data();
    byte ^= std::byte{1};
  }
  EXPECT_THAT(seal.Check(5, page), IsOk());
}

}  // namespace
}  // namespace engram
