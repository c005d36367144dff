#include "tests/gpu/check/random_inputs.h"

#include <cmath>
#include <cstring>
#include <set>

#include "core/model/number_formats.h"
#include "gtest/gtest.h"
#include "tests/gpu/check/fill_random_core.h"

namespace engram::gpu_check {
namespace {

RowFormat V41Rows() {
  RowFormat format;
  format.width = 256;
  return format;
}

TEST(RandomInputsTest, AFunctionOfTheSeed) {
  Random a(1);
  Random b(1);
  Random c(2);
  const uint64_t first = a.Next();
  EXPECT_EQ(b.Next(), first);
  EXPECT_NE(c.Next(), first);
  EXPECT_NE(a.Next(), first);
}

TEST(RandomInputsTest, BelowStaysBelow) {
  Random random(1);
  std::set<uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Below(7));
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(*seen.rbegin(), 6U);
}

TEST(RandomInputsTest, BytesAreTheWordsOfTheDevice) {
  std::vector<std::byte> bytes(21);
  FillRandomBytes(absl::MakeSpan(bytes), 3);
  uint64_t word = 0;
  std::memcpy(&word, &bytes[8], 8);
  EXPECT_EQ(word, RandomWord(3, 1));
  word = RandomWord(3, 2);
  EXPECT_EQ(std::memcmp(&word, &bytes[16], 5), 0);
}

TEST(RandomInputsTest, FourBf16AreFiniteAndOfEverySize) {
  std::set<int> exponents;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t four = FourBf16(RandomWord(1, i));
    for (int lane = 0; lane < 4; ++lane) {
      const float value =
          Bf16ToFloat(static_cast<uint16_t>(four >> (16 * lane)));
      ASSERT_LT(std::fabs(value), 2.0F);
      ASSERT_GE(std::fabs(value), 0x1p-7F);
      exponents.insert(std::ilogb(value));
    }
  }
  EXPECT_EQ(exponents.size(), 8U);
}

TEST(RandomInputsTest, RowsAreSoundAndTinyOnesAreAmongThem) {
  Random random(1);
  const RowFormat format = V41Rows();
  const auto rows = RandomRows(random, format, 500);
  size_t tiny = 0;
  size_t zero = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto byte = std::to_integer<uint8_t>(rows[i]);
    if (i % format.row_bytes() < format.code_bytes()) {
      ASSERT_NE(byte & 0x7F, 0x7F);
    } else if (byte == 0) {
      ++zero;
    } else {
      ASSERT_LT(byte, 120);
      tiny += byte < 105 ? 1 : 0;
    }
  }
  EXPECT_GT(tiny, 50U);
  EXPECT_GT(zero, 8U);
}

TEST(RandomInputsTest, StreamsAreFiniteWithSomeAllZero) {
  Random random(1);
  const auto streams = RandomStreams(random, StreamDtype::kF32, 300, 32);
  size_t zeros = 0;
  for (size_t s = 0; s < 300; ++s) {
    float sum = 0;
    for (size_t i = 0; i < 32; ++i) {
      float value;
      std::memcpy(&value, &streams[4 * (32 * s + i)], sizeof(value));
      ASSERT_TRUE(std::isfinite(value));
      sum += std::fabs(value);
    }
    zeros += sum == 0 ? 1 : 0;
  }
  EXPECT_GT(zeros, 0U);
  EXPECT_LT(zeros, 30U);
}

TEST(RandomInputsTest, MasksHaveBothKinds) {
  Random random(1);
  for (const size_t tokens : {2, 5, 100}) {
    const auto mask = RandomMask(random, tokens, 4);
    EXPECT_EQ(mask.front(), 0);
    EXPECT_EQ(mask.back(), 1);
  }
  EXPECT_EQ(RandomMask(random, 1, 4).size(), 1U);
}

}  // namespace
}  // namespace engram::gpu_check
