#include "compute/project/panel_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/check.h"
#include "core/model/number_formats.h"

// Left out: x86 without FMA, where each one is a call of std::fma, gets one
// build only (the baseline); vectors of unknown length fit no register tile
// (Arm has NEON besides); AVX3_DL has nothing to add to AVX3.
#define HWY_DISABLED_TARGETS                                               \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/project/panel_kernel.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace engram {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, kPanelColumns / 2>;
using FloatVec = hn::Vec<FloatTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());

// A register tile is kGroup tokens by two vectors: with both weights and a
// broadcast it fills the 32 registers of AVX-512 and NEON, or the 16 of AVX2.
constexpr size_t kGroup =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 12 : 6;
// Up to here a decoded weight is used so seldom that it stays in a register.
constexpr size_t kMaxStreamedTokens = 4;
// Scale blocks that are decoded at a time: 16 KiB, half of an L1 cache.
constexpr size_t kTileBlocks = 4;
constexpr size_t kBlockWeights = kScaleBlock * kPanelColumns;

#if HWY_NATIVE_FMA
HWY_INLINE FloatVec Fma(FloatVec a, FloatVec b, FloatVec c) {
  return hn::MulAdd(a, b, c);
}
#else
HWY_INLINE FloatVec Fma(FloatVec a, FloatVec b, FloatVec c) {
  const FloatTag d;
  HWY_ALIGN float x[kLanes];
  HWY_ALIGN float y[kLanes];
  HWY_ALIGN float z[kLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < kLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
}
#endif

// The fields of e4m3 moved to those of an IEEE half are the value * 2^-8,
// subnormals included.
HWY_INLINE FloatVec DecodeE4m3(const uint8_t* HWY_RESTRICT codes) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> d8;
  const hn::Rebind<int16_t, FloatTag> d16;
  const hn::Rebind<hwy::float16_t, FloatTag> d_half;
  const auto wide =
      hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes)));
  const auto half = hn::And(hn::ShiftLeft<7>(wide),
                            hn::Set(d16, static_cast<int16_t>(0xBFFF)));
  return hn::Mul(hn::PromoteTo(d, hn::BitCast(d_half, half)),
                 hn::Set(d, 256.0F));
}

// Weights of one scale block, decoded on each load.
struct StreamedWeights {
  const uint8_t* codes;
  HWY_INLINE FloatVec Load(size_t k, size_t column) const {
    return DecodeE4m3(codes + k * kPanelColumns + column);
  }
};

// Weights of one scale block, decoded before.
struct DecodedWeights {
  const float* values;
  HWY_INLINE FloatVec Load(size_t k, size_t column) const {
    return hn::Load(FloatTag(), values + k * kPanelColumns + column);
  }
};

void DecodeBlock(const uint8_t* HWY_RESTRICT codes,
                 float* HWY_RESTRICT values) {
  for (size_t i = 0; i < kBlockWeights; i += kLanes) {
    hn::Store(DecodeE4m3(codes + i), FloatTag(), values + i);
  }
}

// Adds one scale block's part to the sums of kTokens tokens.
template <size_t kTokens, class Weights>
HWY_INLINE void AddBlock(const float* HWY_RESTRICT rows, Weights weights,
                         float scale, float* HWY_RESTRICT sums) {
  const FloatTag d;
  for (size_t column = 0; column < kPanelColumns; column += 2 * kLanes) {
    FloatVec part[kTokens][2];
#pragma GCC unroll 12
    for (size_t t = 0; t < kTokens; ++t) {
      part[t][0] = hn::Zero(d);
      part[t][1] = hn::Zero(d);
    }
#pragma GCC unroll 2
    for (size_t k = 0; k < kScaleBlock; ++k) {
      const FloatVec left = weights.Load(k, column);
      const FloatVec right = weights.Load(k, column + kLanes);
#pragma GCC unroll 12
      for (size_t t = 0; t < kTokens; ++t) {
        const FloatVec row = hn::Set(d, rows[t * kScaleBlock + k]);
        part[t][0] = Fma(row, left, part[t][0]);
        part[t][1] = Fma(row, right, part[t][1]);
      }
    }
    const FloatVec factor = hn::Set(d, scale);
#pragma GCC unroll 12
    for (size_t t = 0; t < kTokens; ++t) {
      float* const sum = sums + t * kPanelColumns + column;
      hn::Store(Fma(part[t][0], factor, hn::Load(d, sum)), d, sum);
      hn::Store(Fma(part[t][1], factor, hn::Load(d, sum + kLanes)), d,
                sum + kLanes);
    }
  }
}

// A span of scale blocks for a group of kTokens tokens. `values` holds the
// decoded weights of blocks [first, last).
template <size_t kTokens>
void AddDecodedBlocks(const PanelProduct& product, size_t first, size_t last,
                      size_t first_token, const float* values) {
  for (size_t b = first; b < last; ++b) {
    AddBlock<kTokens>(
        product.rows + (b * product.tokens + first_token) * kScaleBlock,
        DecodedWeights{values + (b - first) * kBlockWeights},
        E8m0ToFloat(product.scales[b]),
        product.sums + first_token * kPanelColumns);
  }
}

using AddDecodedBlocksFn = void (*)(const PanelProduct&, size_t, size_t, size_t,
                                    const float*);

template <size_t... kMinusOne>
AddDecodedBlocksFn AddDecodedBlocksOf(size_t tokens,
                                      std::index_sequence<kMinusOne...>) {
  static constexpr AddDecodedBlocksFn kFunctions[] = {
      &AddDecodedBlocks<kMinusOne + 1>...};
  return kFunctions[tokens - 1];
}

void ProjectManyTokens(const PanelProduct& product) {
  HWY_ALIGN float values[kTileBlocks * kBlockWeights];
  const size_t blocks = product.in / kScaleBlock;
  const size_t groups = (product.tokens + kGroup - 1) / kGroup;
  for (size_t first = 0; first < blocks; first += kTileBlocks) {
    const size_t last = std::min(blocks, first + kTileBlocks);
    for (size_t b = first; b < last; ++b) {
      DecodeBlock(product.codes + b * kBlockWeights,
                  values + (b - first) * kBlockWeights);
    }
    size_t token = 0;
    for (size_t g = 0; g < groups; ++g) {
      // Groups of nearly equal size: two of 8 are faster than 12 and 4.
      const size_t end = product.tokens * (g + 1) / groups;
      AddDecodedBlocksOf(end - token, std::make_index_sequence<kGroup>())(
          product, first, last, token, values);
      token = end;
    }
  }
}

template <size_t kTokens>
void ProjectFewTokens(const PanelProduct& product) {
  for (size_t b = 0; b < product.in / kScaleBlock; ++b) {
    AddBlock<kTokens>(product.rows + b * kTokens * kScaleBlock,
                      StreamedWeights{product.codes + b * kBlockWeights},
                      E8m0ToFloat(product.scales[b]), product.sums);
  }
}

void ProjectPanelHere(const PanelProduct& product) {
  std::fill_n(product.sums, product.tokens * kPanelColumns, 0.0F);
  static_assert(kMaxStreamedTokens == 4);
  switch (product.tokens) {
    case 1:
      return ProjectFewTokens<1>(product);
    case 2:
      return ProjectFewTokens<2>(product);
    case 3:
      return ProjectFewTokens<3>(product);
    case 4:
      return ProjectFewTokens<4>(product);
    default:
      return ProjectManyTokens(product);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace engram
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace engram {

HWY_EXPORT(ProjectPanelHere);

void ProjectPanel(const PanelProduct& product) {
  ENGRAM_CHECK(product.tokens > 0 && product.tokens <= kMaxTileTokens);
  ENGRAM_CHECK(product.in % kScaleBlock == 0);
  HWY_DYNAMIC_DISPATCH(ProjectPanelHere)(product);
}

}  // namespace engram
#endif  // HWY_ONCE
