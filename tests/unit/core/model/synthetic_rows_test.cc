#include "core/model/synthetic_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace engram {
namespace {

using Row = std::vector<std::byte>;

RowFormat Format(uint64_t width, uint64_t block_size) {
  return RowFormat::Create("F8_E4M3", "F8_E8M0", width, block_size).value();
}

Row MakeRow(uint64_t seed, uint32_t layer, RowId row, const RowFormat& format) {
  Row bytes(format.row_bytes(), std::byte{0xFF});
  SyntheticRow(seed, LayerId{layer}, row, format, absl::MakeSpan(bytes));
  return bytes;
}

// Clients of other builds recompute the rows: they must never change. Wanted
// bytes by a Python statement of the function.
TEST(SyntheticRowsTest, RowsAreFixed) {
  const Row row = MakeRow(1, 14, 384016681, Format(32, 4));
  std::string hex;
  for (const std::byte byte : row) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[std::to_integer<int>(byte) >> 4];
    hex += kDigits[std::to_integer<int>(byte) & 15];
  }
  EXPECT_EQ(hex,
            "b1b1b8aecd9c088e335eb313aaf818735fe942e34967de580de14190f36a"
            "4bec7375717573747377");
}

TEST(SyntheticRowsTest, NoNanCodesAndScalesInRange) {
  for (const RowFormat& format : {Format(256, 32), Format(27, 9)}) {
    std::array<int, 256> code_counts = {};
    std::array<int, 256> scale_counts = {};
    for (RowId id = 0; id < 4000; ++id) {
      const Row row = MakeRow(7, 1, id * 1073741U, format);
      for (size_t i = 0; i < row.size(); ++i) {
        const auto value = std::to_integer<uint8_t>(row[i]);
        ++(i < format.code_bytes() ? code_counts : scale_counts)[value];
      }
    }
    for (int value = 0; value < 256; ++value) {
      EXPECT_EQ(code_counts[value] > 0, (value & 0x7F) != 0x7F) << value;
      EXPECT_EQ(scale_counts[value] > 0, value >= 113 && value <= 119) << value;
    }
  }
}

TEST(SyntheticRowsTest, SeedLayerAndRowAllMatter) {
  const RowFormat format = Format(32, 32);
  std::set<Row> rows;
  size_t count = 0;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (const uint32_t layer : {0U, 1U, 14U}) {
      for (RowId row = 0; row < 500; ++row, ++count) {
        rows.insert(MakeRow(seed, layer, row, format));
      }
      rows.insert(MakeRow(seed, layer, ~RowId{0}, format));
      ++count;
    }
  }
  EXPECT_EQ(rows.size(), count);
}

}  // namespace
}  // namespace engram
