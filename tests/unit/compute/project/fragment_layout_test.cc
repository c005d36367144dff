#include "compute/project/fragment_layout.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace engram {
namespace {

TEST(FragmentLayoutTest, EveryTokenValueHasItsPlace) {
  for (const size_t tokens : {1, 8, 13}) {
    for (const size_t in : {32, 96}) {
      std::set<size_t> places;
      for (size_t token = 0; token < RoundUpTo(tokens, 8); ++token) {
        for (size_t k = 0; k < in; ++k) {
          places.insert(FragmentIndex(token, k, in));
        }
      }
      EXPECT_EQ(places.size(), FragmentCount(tokens, in));
      EXPECT_EQ(*places.rbegin(), FragmentCount(tokens, in) - 1);
    }
  }
}

TEST(FragmentLayoutTest, EveryWeightHasItsPlaceAndScale) {
  for (const size_t out : {1, 32, 77}) {
    for (const size_t in : {128, 256}) {
      std::set<size_t> places;
      std::set<size_t> scale_places;
      for (size_t feature = 0; feature < RoundUpTo(out, 32); ++feature) {
        for (size_t k = 0; k < in; ++k) {
          places.insert(PackedCodeIndex(feature, k, in));
          scale_places.insert(PackedScaleIndex(feature, k, in));
          ASSERT_EQ(PackedScaleIndex(feature, k, in),
                    PackedScaleIndex(feature / 32 * 32, k / 32 * 32, in));
        }
      }
      EXPECT_EQ(places.size(), PackedCodeCount(out, in));
      EXPECT_EQ(*places.rbegin(), PackedCodeCount(out, in) - 1);
      EXPECT_EQ(scale_places.size(), PackedScaleCount(out, in));
      EXPECT_EQ(*scale_places.rbegin(), PackedScaleCount(out, in) - 1);
    }
  }
}

TEST(FragmentLayoutTest, RowsOfWeightsAreWholeGroupsOfBlocks) {
  for (const size_t blocks : {1, 4, 5}) {
    const size_t in = blocks * 32;
    const size_t padded = RoundUpTo(in, 128);
    EXPECT_EQ(PackedCodeIndex(16, 0, in), 16 * padded);
    EXPECT_EQ(PackedCodeCount(17, in), 32 * padded);
    EXPECT_EQ(PackedScaleIndex(32, 0, in), padded / 32);
    EXPECT_EQ(PackedScaleCount(33, in), 2 * padded / 32);
  }
}

// The places of mma.m16n8k16 as its definition has them: a lane's register
// `reg`, half `half`, of A or B has K `k` of the 16.
struct Place {
  uint32_t row;
  uint32_t k;
};
Place PlaceInA(uint32_t lane, uint32_t reg, uint32_t half) {
  return {lane / 4 + 8 * (reg % 2), lane % 4 * 2 + half + 8 * (reg / 2)};
}
Place PlaceInB(uint32_t lane, uint32_t reg, uint32_t half) {
  return {lane / 4, lane % 4 * 2 + half + 8 * reg};
}

// Each product pairs a weight with the token's value of the same k, and the
// two products of a block have every k once.
TEST(FragmentLayoutTest, BothOperandsHaveTheSameK) {
  std::vector<int> k_of_code(kTileCodes);
  std::vector<uint32_t> feature_of_code(kTileCodes);
  for (uint32_t feature = 0; feature < kTileFeatures; ++feature) {
    for (uint32_t k = 0; k < kFragmentK; ++k) {
      k_of_code[PackedCodeInTile(feature, k)] = static_cast<int>(k);
      feature_of_code[PackedCodeInTile(feature, k)] = feature;
    }
  }
  std::set<int> all;
  for (uint32_t product = 0; product < 2; ++product) {
    std::vector<int> k_at(16, -1);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t reg = 0; reg < 2; ++reg) {
        for (uint32_t half = 0; half < 2; ++half) {
          // A lane's 8 values are b[0], b[1] of both products in their order.
          const uint32_t value = lane * 8 + product * 4 + reg * 2 + half;
          const Place place = PlaceInB(lane, reg, half);
          EXPECT_EQ(value / kFragmentK, place.row);
          const int k = static_cast<int>(value % kFragmentK);
          if (k_at[place.k] < 0) k_at[place.k] = k;
          EXPECT_EQ(k_at[place.k], k);
          EXPECT_EQ(FragmentIndex(place.row, k, kFragmentK), value);
        }
      }
    }
    all.insert(k_at.begin(), k_at.end());
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t reg = 0; reg < 4; ++reg) {
        for (uint32_t half = 0; half < 2; ++half) {
          const uint32_t word = product * 2 + reg % 2;
          const uint32_t code = lane * 16 + word * 4 + half * 2 + reg / 2;
          const Place place = PlaceInA(lane, reg, half);
          EXPECT_EQ(feature_of_code[code], place.row);
          EXPECT_EQ(k_of_code[code], k_at[place.k]);
        }
      }
    }
  }
  EXPECT_EQ(all.size(), kFragmentK);
}

}  // namespace
}  // namespace engram
