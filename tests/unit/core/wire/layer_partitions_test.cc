#include "core/wire/layer_partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const std::vector<LayerPartitionCount> kLayers = {{LayerId{14}, 10},
                                                  {LayerId{1}, 16}};

PartitionRef Ref(uint32_t layer, uint32_t partition) {
  return {LayerId{layer}, PartitionId{partition}};
}

v1::LayerPartitions Entry(uint32_t layer, uint32_t count,
                          const std::string& bitmap) {
  v1::LayerPartitions entry;
  entry.set_layer_id(layer);
  entry.set_partition_count(count);
  entry.set_bitmap(bitmap);
  return entry;
}

absl::StatusOr<std::vector<PartitionRef>> Parse(
    const std::vector<v1::LayerPartitions>& entries) {
  return FromLayerPartitions({entries.begin(), entries.end()}, kLayers);
}

TEST(LayerPartitionsTest, GoThereAndBack) {
  const std::vector<PartitionRef> refs = {Ref(1, 0), Ref(1, 7), Ref(1, 8),
                                          Ref(1, 15), Ref(14, 9)};
  const LayerPartitionsList list = ToLayerPartitions(refs, kLayers);
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[0].layer_id(), 14U);
  EXPECT_EQ(list[0].partition_count(), 10U);
  EXPECT_EQ(list[0].bitmap(), std::string("\0\x02", 2));
  EXPECT_EQ(list[1].bitmap(), "\x81\x81");
  const auto back = FromLayerPartitions(list, kLayers);
  ASSERT_THAT(back, IsOk());
  EXPECT_THAT(*back, ElementsAreArray(refs));
}

TEST(LayerPartitionsTest, LayersWithoutAnyAreLeftOut) {
  EXPECT_EQ(ToLayerPartitions({}, kLayers).size(), 0);
  EXPECT_EQ(ToLayerPartitions({Ref(1, 3)}, kLayers).size(), 1);
  const auto none = Parse({});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(*none, IsEmpty());
  const auto empty = Parse({Entry(1, 16, std::string(2, '\0'))});
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(*empty, IsEmpty());
}

TEST(LayerPartitionsTest, NamesWhatIsWrong) {
  EXPECT_THAT(Parse({Entry(3, 16, "ab")}),
              IsError(kInvalid, HasSubstr("layer 3")));
  EXPECT_THAT(Parse({Entry(1, 17, "abc")}),
              IsError(kInvalid, AllOf(HasSubstr("layer 1"), HasSubstr("17"),
                                      HasSubstr("16"))));
  EXPECT_THAT(Parse({Entry(1, 16, "abc")}),
              IsError(kInvalid, AllOf(HasSubstr("layer 1"), HasSubstr("3 byte"),
                                      HasSubstr("take 2"))));
  EXPECT_THAT(Parse({Entry(14, 10, std::string("\0\x04", 2))}),
              IsError(kInvalid, AllOf(HasSubstr("layer 14"),
                                      HasSubstr("beyond its 10"))));
  EXPECT_THAT(Parse({Entry(1, 16, "ab"), Entry(1, 16, "ab")}),
              IsError(kInvalid, HasSubstr("two bitmaps")));
}

}  // namespace
}  // namespace engram
