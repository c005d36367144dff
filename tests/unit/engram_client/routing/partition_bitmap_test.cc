#include "engram_client/routing/partition_bitmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace engram {
namespace {

TEST(PartitionBitmapTest, ReadsBitsInTheOrderOfTheWire) {
  const std::string bytes("\x01\x80\x00\x00\x00\x00\x00\x00\x02", 9);
  const auto bitmap = PartitionBitmap::FromBytes(bytes, 70);
  ASSERT_TRUE(bitmap.ok()) << bitmap.status();
  std::vector<uint32_t> set;
  bitmap->ForEach([&](uint32_t p) { set.push_back(p); });
  EXPECT_THAT(set, testing::ElementsAre(0, 15, 65));
  EXPECT_EQ(bitmap->Count(), 3u);
  EXPECT_TRUE(bitmap->Test(65));
  EXPECT_FALSE(bitmap->Test(64));
}

TEST(PartitionBitmapTest, SetAndClear) {
  PartitionBitmap bitmap(65);
  bitmap.Set(64);
  bitmap.Set(0);
  bitmap.Clear(0);
  EXPECT_EQ(bitmap.Count(), 1u);
  EXPECT_TRUE(bitmap.Test(64));
}

TEST(PartitionBitmapTest, RefusesAWrongSizeAndBitsPastTheEnd) {
  EXPECT_FALSE(PartitionBitmap::FromBytes("", 1).ok());
  EXPECT_FALSE(PartitionBitmap::FromBytes(std::string(2, '\0'), 8).ok());
  EXPECT_FALSE(PartitionBitmap::FromBytes(std::string(1, '\x20'), 5).ok());
  EXPECT_TRUE(PartitionBitmap::FromBytes(std::string(1, '\x10'), 5).ok());
  EXPECT_TRUE(PartitionBitmap::FromBytes(std::string(8, '\xff'), 64).ok());
  EXPECT_TRUE(PartitionBitmap::FromBytes("", 0).ok());
}

}  // namespace
}  // namespace engram
