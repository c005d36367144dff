#include "core/model/numpy_random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

// All wanted values were drawn by numpy 1.24:
// default_rng(seed).integers(0, bound, dtype=int64), in this order of bounds.
namespace engram {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

uint64_t AddToDigest(uint64_t digest, int64_t value) {
  return (digest * 1099511628211ULL) ^ static_cast<uint64_t>(value);
}

// Draws one value of each bound, kRounds times, from each of 200 seeds.
uint64_t DigestOverSeeds(const std::function<int64_t(int)>& bound, int end) {
  constexpr int kRounds = 3;
  uint64_t digest = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    NumpyRandom random(seed);
    for (int round = 0; round < kRounds; ++round) {
      for (int power = 0; power < end; power += 3) {
        digest = AddToDigest(digest, random.Integer(bound(power)));
      }
    }
  }
  return digest;
}

struct Sequence {
  uint64_t seed;
  std::vector<int64_t> values;
};

TEST(NumpyRandomTest, MatchesNumpyForBoundsOfAllKinds) {
  constexpr int64_t kTwo32 = int64_t{1} << 32;
  const std::vector<int64_t> bounds = {int64_t{1} << 62,
                                       10,
                                       1,
                                       kTwo32,
                                       kTwo32 - 1,
                                       7,
                                       kTwo32 + 1,
                                       kMaxInt64 / 4 * 3 + 3,
                                       kMaxInt64,
                                       int64_t{3} << 30,
                                       1000};
  ASSERT_EQ(bounds[7], int64_t{3} << 61);
  const std::vector<Sequence> wanted = {
      {0,
       {2937467307694268567, 5, 0, 1158725112, 1322117303, 0, 70985654,
        6314013200959933085, 5595227450766711102, 3126981555, 729}},
      {1,
       {2360360630558964031, 7, 0, 4082210491, 149690572, 1, 4074418351,
        2157103121014000383, 3904497331914684451, 2666216678, 256}},
      {10007,
       {3796813830707316620, 6, 0, 223327894, 2352731946, 2, 3414020522,
        1538764283633127253, 207909982170572130, 2686842718, 640}},
      {140098,
       {3355097104887443524, 0, 0, 2376879038, 2004873746, 2, 3812324438,
        3743281403720626725, 3717651356639784311, 2566719427, 117}},
      {2147483648,
       {4163745683646332152, 2, 0, 236772590, 2992960704, 6, 395328837,
        2866493146346151686, 7629799750990910407, 2361121789, 852}},
      {4294967295,
       {1161884630185820007, 7, 0, 940880430, 3906526356, 2, 2658504451,
        6467974665005737908, 2729810797631738713, 2721361898, 520}},
      {4294967296,
       {4103195943789856137, 9, 0, 2392889704, 1301146045, 5, 4108195565,
        405472071792990270, 2180411562519181160, 807974085, 787}},
      {9223372036854788153U,
       {2279032250209689479, 4, 0, 2473975316, 899463633, 0, 3710718789,
        3001615723599246962, 6407840993810793122, 755172537, 796}},
      {18446744073709551615U,
       {3136069527525250467, 9, 0, 3630586357, 1539494473, 0, 3842140847,
        892120753381440682, 2940766199871733711, 2611763414, 589}},
  };
  for (const Sequence& sequence : wanted) {
    NumpyRandom random(sequence.seed);
    for (size_t i = 0; i < bounds.size(); ++i) {
      EXPECT_EQ(random.Integer(bounds[i]), sequence.values[i])
          << "seed " << sequence.seed << " draw " << i;
    }
  }
}

TEST(NumpyRandomTest, MatchesNumpyOverManySeedsAndPowers) {
  EXPECT_EQ(DigestOverSeeds([](int k) { return int64_t{1} << k; }, 63),
            13651746224385175318U);
  EXPECT_EQ(DigestOverSeeds([](int k) { return (int64_t{1} << k) + 1; }, 63),
            2489839069660435180U);
  EXPECT_EQ(DigestOverSeeds([](int k) { return (int64_t{3} << k) - 1; }, 62),
            9330895535400215184U);
}

// Bounds just above a power of two refuse up to half of all draws.
TEST(NumpyRandomTest, MatchesNumpyThroughManyRejections) {
  NumpyRandom random(5);
  uint64_t digest = 0;
  for (const int64_t bound :
       {kMaxInt64, int64_t{3} << 30, (int64_t{6} << 60) + 1, int64_t{100},
        int64_t{46540000000000}}) {
    for (int i = 0; i < 2001; ++i) {
      digest = AddToDigest(digest, random.Integer(bound));
    }
  }
  EXPECT_EQ(digest, 18412113896637211334U);
}

TEST(NumpyRandomTest, BoundOfOneDrawsNothing) {
  NumpyRandom with(3);
  NumpyRandom without(3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(with.Integer(1), 0);
  EXPECT_EQ(with.Integer(kMaxInt64), without.Integer(kMaxInt64));
}

}  // namespace
}  // namespace engram
