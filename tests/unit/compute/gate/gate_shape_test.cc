#include "compute/gate/gate_shape.h"

#include <cstdint>

#include "compute/gate/gate_args.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

constexpr uint32_t kMaxSharedBytes = 227 * 1024;  // of a block, sm_90

GateArgs Args(StreamDtype dtype, uint32_t tokens, uint32_t hc, uint32_t dim) {
  GateArgs args;
  args.dtype = dtype;
  args.token_count = tokens;
  args.hc_mult = hc;
  args.dim = dim;
  return args;
}

const void* At(uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(GateShapeTest, EveryStreamHasItsThreads) {
  for (const StreamDtype dtype : {StreamDtype::kBf16, StreamDtype::kF32}) {
    for (const uint32_t dim :
         {1U, 2U, 4U, 255U, 256U, 2560U, 2564U, 5120U, 5124U, 7168U, 10240U,
          16384U, kMaxGateDim - 1, kMaxGateDim}) {
      for (const uint32_t hc : {1U, 2U, 3U, 4U, 7U, 16U}) {
        for (const uint32_t tokens : {1U, 64U, 65U, 4096U, 1U << 24}) {
          const GateArgs args = Args(dtype, tokens, hc, dim);
          const GateShape shape = MakeGateShape(args);
          const LaunchShape& launch = shape.launch;
          const uint32_t threads = GateStreamThreads(shape.width);
          SCOPED_TRACE(testing::Message() << dim << " " << hc << " " << tokens);
          ASSERT_EQ(launch.block_x % threads, 0U);
          const uint32_t streams = launch.block_x / threads;
          ASSERT_EQ(hc % streams, 0U);
          ASSERT_EQ(uint64_t{launch.grid_x} * streams, uint64_t{tokens} * hc);
          ASSERT_EQ(launch.grid_x, GateBlockCount(args));
          ASSERT_LE(launch.block_x, GateBlockThreads(shape.width));
          ASSERT_EQ(dim % shape.width, 0U);
          ASSERT_EQ(shape.is_whole, dim % kGateWholeFeatures == 0);
          // What a stream's groups of words reach, behind what all reduce in.
          const uint32_t group = GateKeyWords(shape.width) * kGateSums;
          const uint32_t groups = (dim - 1) / group + 1;
          ASSERT_EQ(shape.kept_bytes, groups * group * StreamBytes(dtype));
          ASSERT_EQ(
              launch.shared_bytes,
              streams * (GateReduceBytes(shape.width) + shape.kept_bytes));
          ASSERT_LE(launch.shared_bytes, kMaxSharedBytes);
          ASSERT_LE(streams > 1 ? launch.shared_bytes : 0, 48U << 10);
        }
      }
    }
  }
}

TEST(GateShapeTest, ReductionFitsAndStaysAligned) {
  for (const uint32_t width : {1U, 2U, 4U}) {
    const uint32_t warps = GateStreamThreads(width) / 32;
    EXPECT_GE(GateReduceBytes(width), (warps * 3 + 1) * sizeof(double));
    EXPECT_EQ(GateReduceBytes(width) % 16, 0U);
    // With all its blocks an SM needs no more threads and memory than it has.
    for (const uint32_t bytes : {2U, 4U}) {
      for (const bool whole : {false, true}) {
        const uint32_t blocks = GateBlocksPerSm(width, bytes, whole);
        EXPECT_LE(blocks * GateBlockThreads(width), 2048U);
      }
    }
  }
}

TEST(GateShapeTest, V41TakesTwoStreamsABlockAndAllWordsAreThere) {
  const GateShape shape =
      MakeGateShape(Args(StreamDtype::kBf16, 4096, 4, 5120));
  EXPECT_EQ(shape.launch.grid_x, 8192U);
  EXPECT_EQ(shape.launch.block_x, 128U);
  EXPECT_EQ(shape.width, 4U);
  EXPECT_TRUE(shape.is_whole);
  EXPECT_EQ(shape.kept_bytes, 10240U);
  EXPECT_LE(5 * (shape.launch.shared_bytes + 1024), 132U << 10);
}

TEST(GateShapeTest, FewTokensGetMoreThreads) {
  const GateShape shape = MakeGateShape(Args(StreamDtype::kBf16, 64, 4, 5120));
  EXPECT_EQ(shape.launch.grid_x, 256U);
  EXPECT_EQ(shape.launch.block_x, 128U);
  EXPECT_EQ(shape.width, 2U);
}

TEST(GateShapeTest, AlignmentDecidesHowWideAThreadReads) {
  const auto width = [](auto change) {
    GateArgs args = Args(StreamDtype::kBf16, 100, 4, 5120);
    change(args);
    return MakeGateShape(args).width;
  };
  EXPECT_EQ(width([](GateArgs&) {}), 4U);
  EXPECT_EQ(width([](GateArgs& args) { args.dim = 5122; }), 1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.streams = static_cast<const std::byte*>(At(8));
            }),
            4U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.streams = static_cast<const std::byte*>(At(4));
            }),
            1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.dtype = StreamDtype::kF32;
              args.streams = static_cast<const std::byte*>(At(8));
            }),
            1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.out_streams =
                  static_cast<std::byte*>(const_cast<void*>(At(2)));
            }),
            1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.kv = static_cast<const uint16_t*>(At(4));
            }),
            1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.weight = static_cast<const float*>(At(8));
            }),
            1U);
  EXPECT_EQ(width([](GateArgs& args) {
              args.out_value = static_cast<uint16_t*>(const_cast<void*>(At(4)));
            }),
            1U);
}

TEST(GateShapeTest, BlocksAreCountedWithoutOverflow) {
  const GateArgs args = Args(StreamDtype::kF32, 0xFFFFFFFF, 0xFFFFFFFF, 1);
  EXPECT_EQ(GateBlockCount(args), uint64_t{0xFFFFFFFF} * 0xFFFFFFFF);
  EXPECT_EQ(GateBlockCount(Args(StreamDtype::kBf16, 0, 4, 5120)), 0U);
}

}  // namespace
}  // namespace engram
