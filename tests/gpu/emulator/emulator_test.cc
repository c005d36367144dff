#include "tests/gpu/emulator/emulator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/gpu/ptx.cuh"
#include "core/model/number_formats.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

constexpr uint64_t kSeeds = 20;

__global__ void WriteIndices(uint32_t* out) {
  const uint32_t block =
      (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
  const uint32_t i = block * blockDim.x * blockDim.y + thread;
  out[i] += i + 1;
}

TEST(EmulatorTest, EachThreadOfEachBlockRunsOnce) {
  const LaunchShape shape = {3, 4, 2, 16, 6};
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::vector<uint32_t> out(3 * 4 * 2 * 16 * 6);
    emulator::Launch(shape, seed, WriteIndices, out.data());
    for (uint32_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i + 1);
  }
}

// Turns `out` round within the block through shared memory.
__global__ void Reverse(uint32_t* out, bool with_barrier) {
  auto* const shared = reinterpret_cast<uint32_t*>(gpu::SharedBytes());
  shared[threadIdx.x] = threadIdx.x;
  if (with_barrier) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      shared[blockDim.x - 1 - threadIdx.x];
}

bool IsReversed(const std::vector<uint32_t>& out, uint32_t threads) {
  for (uint32_t i = 0; i < out.size(); ++i) {
    if (out[i] != threads - 1 - i % threads) return false;
  }
  return true;
}

TEST(EmulatorTest, AMissingBarrierShowsWithEverySeed) {
  for (const uint32_t threads : {32U, 64U, 1024U}) {
    LaunchShape shape = {2, 1, 1, threads, 1, threads * 4};
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      std::vector<uint32_t> out(2 * threads);
      emulator::Launch(shape, seed, Reverse, out.data(), true);
      EXPECT_TRUE(IsReversed(out, threads)) << threads << " " << seed;
      emulator::Launch(shape, seed, Reverse, out.data(), false);
      EXPECT_FALSE(IsReversed(out, threads)) << threads << " " << seed;
    }
  }
}

// Every warp's sum, one after the other through one word of shared memory:
// what is read must be read before it is written again.
__global__ void Hand(uint32_t* out, bool with_second_barrier) {
  auto* const shared = reinterpret_cast<uint32_t*>(gpu::SharedBytes());
  const uint32_t warps = blockDim.x / 32;
  uint32_t sum = 0;
  for (uint32_t turn = 0; turn < warps; ++turn) {
    if (threadIdx.x == turn * 32) *shared = turn + 1;
    __syncthreads();
    sum = sum * 10 + *shared;
    if (with_second_barrier) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST(EmulatorTest, AMissingSecondBarrierShowsWithSomeSeed) {
  const LaunchShape shape = {1, 1, 1, 128, 1, 4};
  size_t wrong = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::vector<uint32_t> out(128);
    emulator::Launch(shape, seed, Hand, out.data(), true);
    EXPECT_EQ(out, std::vector<uint32_t>(128, 1234)) << seed;
    emulator::Launch(shape, seed, Hand, out.data(), false);
    if (out != std::vector<uint32_t>(128, 1234)) ++wrong;
  }
  EXPECT_GT(wrong, kSeeds / 2);
}

__global__ void ReadShared(uint32_t* out) {
  out[threadIdx.x] =
      reinterpret_cast<uint32_t*>(gpu::SharedBytes())[threadIdx.x]++;
}

TEST(EmulatorTest, SharedMemoryIsPoisonedForEachBlock) {
  std::vector<uint32_t> out(32);
  emulator::Launch({2, 1, 1, 32, 1, 128}, 0, ReadShared, out.data());
  EXPECT_EQ(out, std::vector<uint32_t>(32, 0xFFFFFFFF));
}

// Each lane copies a word, waits for it and reads its neighbour's.
__global__ void CopyWords(const uint4* from, uint32_t* out, bool with_barrier) {
  auto* const shared = reinterpret_cast<uint4*>(gpu::SharedBytes());
  gpu::CopyAsync(shared + threadIdx.x, from + threadIdx.x);
  gpu::CommitCopies();
  gpu::CommitCopies();
  gpu::WaitCopies<1>();
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = shared[(threadIdx.x + 1) % 32].x;
  gpu::WaitCopies<0>();
}

TEST(EmulatorTest, CopiesAreThereAfterTheWaitAndABarrier) {
  std::vector<uint4> from(32);
  std::vector<uint32_t> wanted(32);
  for (uint32_t i = 0; i < 32; ++i) {
    from[i] = {i, i, i, i};
    wanted[i] = (i + 1) % 32;
  }
  std::vector<uint32_t> out(32);
  emulator::Launch({1, 1, 1, 32, 1, 512}, 0, CopyWords, from.data(), out.data(),
                   true);
  EXPECT_EQ(out, wanted);
  emulator::Launch({1, 1, 1, 32, 1, 512}, 0, CopyWords, from.data(), out.data(),
                   false);
  EXPECT_NE(out, wanted);
}

__global__ void CopyLate(const uint4* from, uint32_t* out) {
  auto* const shared = reinterpret_cast<uint4*>(gpu::SharedBytes());
  gpu::CopyAsync(shared + threadIdx.x, from);
  gpu::CommitCopies();
  gpu::WaitCopies<1>();
  out[threadIdx.x] = shared[threadIdx.x].x;
  gpu::WaitCopies<0>();
}

TEST(EmulatorTest, ReadingBeforeTheWaitShows) {
  const uint4 from = {1, 2, 3, 4};
  std::vector<uint32_t> out(32);
  emulator::Launch({1, 1, 1, 32, 1, 512}, 0, CopyLate, &from, out.data());
  EXPECT_EQ(out, std::vector<uint32_t>(32, 0xFFFFFFFF));
}

__global__ void CopyAndReturn(const uint4* from) {
  gpu::CopyAsync(reinterpret_cast<uint4*>(gpu::SharedBytes()), from);
  gpu::CommitCopies();
}

template <typename T>
__global__ void Shuffles(T* out) {
  const uint32_t lane = threadIdx.x % 32;
  const T value = static_cast<T>(threadIdx.x);
  T* const to = out + threadIdx.x * 2;
  to[0] = gpu::Shuffle(value, lane * 7 + 3);
  to[1] = gpu::ShuffleXor(value, 9);
}

template <typename T>
void CheckShuffles() {
  std::vector<T> out(64 * 2);
  emulator::Launch({1, 1, 1, 64}, 1, Shuffles<T>, out.data());
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t warp = i / 32 * 32;
    const uint32_t lane = i % 32;
    EXPECT_EQ(out[i * 2], static_cast<T>(warp + (lane * 7 + 3) % 32)) << i;
    EXPECT_EQ(out[i * 2 + 1], static_cast<T>(warp + (lane ^ 9))) << i;
  }
}

TEST(EmulatorTest, ShufflesMoveValuesWithinAWarp) {
  CheckShuffles<uint32_t>();
  CheckShuffles<int32_t>();
  CheckShuffles<float>();
  CheckShuffles<double>();
}

struct Matrices {
  uint16_t a[16][16];
  uint16_t b[16][8];
  float d[16][8];
};

// Fragments as the PTX manual lists them, element by element.
__global__ void MultiplyTile(Matrices* m) {
  const uint32_t g = threadIdx.x >> 2;
  const uint32_t t = threadIdx.x & 3;
  const auto pair = [](uint16_t low, uint16_t high) {
    return static_cast<uint32_t>(high) << 16 | low;
  };
  const uint32_t a[4] = {pair(m->a[g][2 * t], m->a[g][2 * t + 1]),
                         pair(m->a[g + 8][2 * t], m->a[g + 8][2 * t + 1]),
                         pair(m->a[g][2 * t + 8], m->a[g][2 * t + 9]),
                         pair(m->a[g + 8][2 * t + 8], m->a[g + 8][2 * t + 9])};
  const uint32_t b[2] = {pair(m->b[2 * t][g], m->b[2 * t + 1][g]),
                         pair(m->b[2 * t + 8][g], m->b[2 * t + 9][g])};
  float d[4] = {m->d[g][2 * t], m->d[g][2 * t + 1], m->d[g + 8][2 * t],
                m->d[g + 8][2 * t + 1]};
  gpu::MmaBf16(d, a, b);
  m->d[g][2 * t] = d[0];
  m->d[g][2 * t + 1] = d[1];
  m->d[g + 8][2 * t] = d[2];
  m->d[g + 8][2 * t + 1] = d[3];
}

TEST(EmulatorTest, MmaIsTheProductOfTheMatrices) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Matrices m;
  for (auto& row : m.a) {
    for (uint16_t& v : row) v = FloatToBf16(normal(random));
  }
  for (auto& row : m.b) {
    for (uint16_t& v : row) v = FloatToBf16(normal(random));
  }
  for (auto& row : m.d) {
    for (float& v : row) v = normal(random);
  }
  Matrices got = m;
  emulator::Launch({1, 1, 1, 32}, 1, MultiplyTile, &got);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 16; ++k) {
        sum += double{Bf16ToFloat(m.a[i][k])} * Bf16ToFloat(m.b[k][j]);
      }
      EXPECT_EQ(got.d[i][j], static_cast<float>(m.d[i][j] + sum))
          << i << " " << j;
    }
  }
}

TEST(EmulatorTest, PackedProductsAreRoundedToTheNearest) {
  const auto pair = [](float low, float high) {
    return static_cast<uint32_t>(FloatToBf16(high)) << 16 | FloatToBf16(low);
  };
  // 129/128 squared is 1 + 2/128 + 1/16384; 3 * 2^-133 is subnormal.
  EXPECT_EQ(
      gpu::MulBf16x2(pair(1.0078125F, 0x3p-133F), pair(1.0078125F, 0x1p120F)),
      pair(1.015625F, 0x3p-13F));
}

TEST(EmulatorTest, PackedFloatsAreRoundedToTheNearest) {
  EXPECT_EQ(gpu::PackBf16x2(1.00390625F, -1.01171875F), 0xBF823F80);  // ties
  EXPECT_EQ(gpu::PackBf16x2(0x1p-133F, FloatFromBits(0xFFC01234)), 0x7FFF0001);
}

TEST(EmulatorTest, BytesArePermuted) {
  EXPECT_EQ(gpu::PermuteBytes(0x33221100, 0x77665544, 0x3715), 0x33771155);
}

__global__ void LoadAt(const unsigned char* from) {
  gpu::LoadStreaming(reinterpret_cast<const uint2*>(from));
}

__global__ void SomeLanesShuffle() {
  if (threadIdx.x != 5) gpu::ShuffleXor(1.0F, 1);
}

__global__ void LanesDiverge() {
  if (threadIdx.x < 8) {
    gpu::ShuffleXor(1.0F, 1);
  } else {
    __syncwarp();
  }
}

__global__ void OneWarpWaits() {
  if (threadIdx.x < 32) __syncthreads();
}

__global__ void LanesWaitForTheBlock() {
  if (threadIdx.x == 33) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

TEST(EmulatorDeathTest, ReportsWhatNotAllThreadsReach) {
  EXPECT_DEATH(
      emulator::Launch({2, 1, 1, 32}, 0, SomeLanesShuffle),
      R"(block \(0,0,0\) thread \(0,0\) waits in Shuffle.*thread \(5,0\) .*it returned)");
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 32}, 1, LanesDiverge),
               "divergent warp");
  EXPECT_DEATH(
      emulator::Launch({1, 1, 1, 64}, 1, OneWarpWaits),
      R"(waits in __syncthreads, which thread \([3-6][0-9],0\).*it returned)");
  EXPECT_DEATH(
      emulator::Launch({1, 1, 1, 64}, 1, LanesWaitForTheBlock),
      R"(thread \(33,0\) waits in __syncwarp, .*it waits in __syncthreads)");
}

TEST(EmulatorDeathTest, ReportsCopiesThatNobodyWaitedFor) {
  const uint4 from = {};
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 32, 1, 16}, 0, CopyAndReturn, &from),
               "without waiting for its copies");
}

TEST(EmulatorDeathTest, RefusesWhatTheDeviceWould) {
  alignas(16) unsigned char bytes[32] = {};
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 32}, 0, LoadAt, bytes + 4),
               "misaligned");
  EXPECT_DEATH(emulator::Launch({0, 1, 1, 32}, 0, LanesDiverge), "grid_x");
  EXPECT_DEATH(emulator::Launch({1, 65536, 1, 32}, 0, LanesDiverge), "grid_y");
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 1056}, 0, LanesDiverge), "threads");
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 33}, 0, LanesDiverge), "threads");
  EXPECT_DEATH(emulator::Launch({1, 1, 1, 32, 1, 232449}, 0, LanesDiverge),
               "shared_bytes");
}

}  // namespace
}  // namespace engram
