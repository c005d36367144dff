#include "compute/project/weight_pack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compute/project/fragment_layout.h"
#include "core/base/check.h"
#include "core/model/number_formats.h"

namespace engram {
namespace {

using TilePlaces = std::array<uint16_t, kTileCodes>;

// Where the tile's code [feature][k] goes.
constexpr TilePlaces MakeTilePlaces() {
  TilePlaces places = {};
  for (uint32_t feature = 0; feature < kTileFeatures; ++feature) {
    for (uint32_t k = 0; k < kFragmentK; ++k) {
      places[feature * kFragmentK + k] =
          static_cast<uint16_t>(PackedCodeInTile(feature, k));
    }
  }
  return places;
}
constexpr TilePlaces kTilePlaces = MakeTilePlaces();

void PackTile(const ProjectionWeights& weights, size_t first_feature,
              size_t first_k, uint8_t* packed) {
  const size_t features =
      std::min<size_t>(kTileFeatures, weights.out - first_feature);
  for (size_t feature = 0; feature < features; ++feature) {
    const uint8_t* const from =
        &weights.codes[(first_feature + feature) * weights.in + first_k];
    const uint16_t* const places = &kTilePlaces[feature * kFragmentK];
    for (size_t k = 0; k < kFragmentK; ++k) packed[places[k]] = from[k];
  }
}

// The values of all codes at one scale.
struct ScaledCodes {
  std::array<uint16_t, 256> values;
  bool exact[256];
};

ScaledCodes ScaleCodes(uint8_t scale) {
  ScaledCodes scaled;
  for (uint32_t code = 0; code < 256; ++code) {
    const float value =
        E4m3ToFloat(static_cast<uint8_t>(code)) * E8m0ToFloat(scale);
    scaled.values[code] = FloatToBf16(value);
    scaled.exact[code] = std::isfinite(value) && RoundToBf16(value) == value;
  }
  return scaled;
}

// One block of up to 32 features by 32 of K. False if a code is not exact.
bool ExpandBlock(const ProjectionWeights& weights, const ScaledCodes& scaled,
                 size_t first_feature, size_t first_k,
                 absl::Span<uint16_t> values) {
  const size_t last_feature =
      std::min<size_t>(weights.out, first_feature + kWeightBlock);
  bool exact = true;
  for (size_t feature = first_feature; feature < last_feature; ++feature) {
    const size_t at = feature * weights.in + first_k;
    for (size_t i = at; i < at + kWeightBlock; ++i) {
      const uint8_t code = weights.codes[i];
      values[i] = scaled.values[code];
      exact = exact && scaled.exact[code];
    }
  }
  return exact;
}

}  // namespace

void PackWeights(const ProjectionWeights& weights, ThreadPool* pool,
                 absl::Span<uint8_t> codes, absl::Span<float> scales) {
  const size_t blocks = weights.in / kFragmentK;
  ENGRAM_CHECK(codes.size() == PackedCodeCount(weights.out, weights.in));
  ENGRAM_CHECK(scales.size() == PackedScaleCount(weights.out, weights.in));
  const size_t tile_rows =
      (size_t{weights.out} + kTileFeatures - 1) / kTileFeatures;
  pool->ParallelFor(tile_rows, [&](size_t row) {
    const size_t feature = row * kTileFeatures;
    for (size_t block = 0; block < blocks; ++block) {
      const size_t k = block * kFragmentK;
      PackTile(weights, feature, k,
               &codes[PackedCodeIndex(feature, k, weights.in)]);
    }
  });
  for (size_t i = 0; i < weights.scales.size(); ++i) {
    const size_t at = PackedScaleIndex(i / blocks * kScaleFeatures,
                                       i % blocks * kFragmentK, weights.in);
    scales[at] = E8m0ToFloat(weights.scales[i]);
  }
}

absl::Status ExpandWeights(const ProjectionWeights& weights, ThreadPool* pool,
                           absl::Span<uint16_t> values) {
  ENGRAM_CHECK(values.size() == weights.codes.size());
  std::vector<ScaledCodes> scaled(256);
  for (uint32_t scale = 0; scale < 256; ++scale) {
    scaled[scale] = ScaleCodes(static_cast<uint8_t>(scale));
  }
  const size_t blocks = weights.in / kWeightBlock;
  const size_t rows = weights.scales.size() / blocks;
  std::atomic<size_t> inexact{weights.scales.size()};
  pool->ParallelFor(rows, [&](size_t row) {
    for (size_t block = 0; block < blocks; ++block) {
      const size_t scale = row * blocks + block;
      if (!ExpandBlock(weights, scaled[weights.scales[scale]],
                       row * kWeightBlock, block * kWeightBlock, values)) {
        inexact.store(scale);
      }
    }
  });
  const size_t scale = inexact.load();
  if (scale == weights.scales.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "scale ", scale, " of the projection weight is 2^",
      int{weights.scales[scale]} - 127,
      ", with which its codes are not exact in bf16: the fast projection "
      "cannot have them"));
}

uint64_t GpuWeightBytes(uint32_t in, uint32_t out, ProjectionMode mode) {
  const uint64_t packed =
      PackedCodeCount(out, in) + PackedScaleCount(out, in) * sizeof(float);
  const uint64_t expanded = uint64_t{out} * in * sizeof(uint16_t);
  return mode == ProjectionMode::kFast ? packed + expanded : packed;
}

}  // namespace engram
