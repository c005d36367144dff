// What a GPU block takes of a device's memory: arithmetic, tested in every
// build.

#include <cstdint>

#include "compute/block/gpu_block.h"
#include "compute/block/gpu_slot_sizes.h"
#include "core/model/presets.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

RowFormat FormatOf(const EngramConfig& config) {
  return RowFormat::Create("F8_E4M3", "F8_E8M0", config.head_dim, 32).value();
}

TEST(GpuSlotSizesTest, OneTokenOfV41) {
  const EngramConfig config = PresetConfig("v41").value();
  const GpuSlotSizes sizes = GpuSlotSizes::For(config, FormatOf(config), 8);
  EXPECT_EQ(sizes.tokens, 8);
  EXPECT_EQ(sizes.rows, 8 * 6336);
  EXPECT_EQ(sizes.values, 8 * 12288);
  EXPECT_EQ(sizes.kv, 8 * 51200);
  EXPECT_EQ(sizes.streams, 8 * 2 * 40960);
  EXPECT_EQ(sizes.gate + sizes.value, 8 * 10256);
  EXPECT_EQ(sizes.DeviceBytes(), sizes.PinnedBytes() + sizes.values + sizes.kv);
}

TEST(GpuSlotSizesTest, DecodedRowsArePaddedToWholeFragments) {
  const EngramConfig config = PresetConfig("tiny").value();
  const RowFormat format = FormatOf(config);
  EXPECT_EQ(GpuSlotSizes::For(config, format, 1).values,
            GpuSlotSizes::For(config, format, 8).values);
  EXPECT_EQ(GpuSlotSizes::For(config, format, 9).values,
            2 * GpuSlotSizes::For(config, format, 8).values);
}

TEST(GpuBlockBytesTest, GrowsWithSlotsTilesAndTheFastMode) {
  const EngramConfig config = PresetConfig("v41").value();
  const RowFormat format = FormatOf(config);
  const GpuBlockOptions options;
  const uint64_t bytes = GpuBlockBytes(config, format, options);
  // Two layers of 157 MB of codes, and what four slots hold.
  EXPECT_GT(bytes, uint64_t{314} << 20);
  EXPECT_LT(bytes, uint64_t{4} << 30);
  const auto more = [&](auto change) {
    GpuBlockOptions changed = options;
    change(changed);
    return GpuBlockBytes(config, format, changed) - bytes;
  };
  const uint64_t slot =
      GpuSlotSizes::For(config, format, options.tile_tokens).DeviceBytes();
  EXPECT_EQ(more([](auto& o) { o.slots += 2; }), 2 * slot);
  EXPECT_EQ(more([](auto& o) { o.tile_tokens *= 2; }), options.slots * slot);
  EXPECT_EQ(more([](auto& o) { o.projection = ProjectionMode::kFast; }),
            uint64_t{2} * config.wkv_in() * config.wkv_out() * 2);
}

}  // namespace
}  // namespace engram
