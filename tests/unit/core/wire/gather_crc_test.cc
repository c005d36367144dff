#include "core/wire/gather_crc.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/wire/crc32c.h"

namespace engram {
namespace {

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::vector<internal::Crc32cFunction> Implementations() {
  std::vector<internal::Crc32cFunction> functions = {
      &internal::ExtendCrc32cByTable, &ExtendCrc32c};
  if (internal::HardwareCrc32c() != nullptr) {
    functions.push_back(internal::HardwareCrc32c());
  }
  return functions;
}

TEST(Crc32cTest, KnownValues) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  for (const auto crc : Implementations()) {
    EXPECT_EQ(crc(0, {}), 0U);
    EXPECT_EQ(crc(0, BytesOf("123456789")), 0xE3069283U);
    // RFC 3720, appendix B.4.
    EXPECT_EQ(crc(0, BytesOf(std::string(32, '\0'))), 0x8A9136AAU);
    EXPECT_EQ(crc(0, BytesOf(std::string(32, '\xFF'))), 0x62A8AB43U);
    EXPECT_EQ(crc(0, BytesOf(ascending)), 0x46DD794EU);
  }
}

TEST(Crc32cTest, ImplementationsAgreeOnEveryLengthAndStart) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37 + 11);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length <= text.size(); ++length) {
      const auto bytes = BytesOf(text).subspan(start, length);
      const uint32_t wanted = internal::ExtendCrc32cByTable(0, bytes);
      ASSERT_EQ(ExtendCrc32c(0, bytes), wanted) << start << " " << length;
    }
  }
}

TEST(Crc32cTest, Extends) {
  for (const auto crc : Implementations()) {
    EXPECT_EQ(crc(crc(0, BytesOf("1234")), BytesOf("56789")), 0xE3069283U);
  }
}

TEST(GatherCrcTest, CoversVersionLayersIdsAndRowsInOrder) {
  const std::vector<RowId> ids = {1, 0x01020304};
  const std::string wire = std::string("v1") + std::string("\x0E\0\0\0", 4) +
                           std::string("\x01\0\0\0\x04\x03\x02\x01", 8) +
                           "rows";
  GatherCrc crc("v1");
  crc.AddLayer(LayerId{14}, ids);
  crc.AddRows(BytesOf("ro"));
  crc.AddRows(BytesOf("ws"));
  EXPECT_EQ(crc.value(), ExtendCrc32c(0, BytesOf(wire)));
}

TEST(GatherCrcTest, NoticesOtherRequests) {
  const auto value = [](absl::string_view version, uint32_t layer, RowId id) {
    GatherCrc crc(version);
    crc.AddLayer(LayerId{layer}, {id});
    return crc.value();
  };
  EXPECT_NE(value("v", 1, 2), value("w", 1, 2));
  EXPECT_NE(value("v", 1, 2), value("v", 14, 2));
  EXPECT_NE(value("v", 1, 2), value("v", 1, 3));
}

}  // namespace
}  // namespace engram
