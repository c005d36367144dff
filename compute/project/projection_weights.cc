#include "compute/project/projection_weights.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

size_t BlockRows(const ProjectionWeights& weights) {
  return (size_t{weights.out} + kWeightBlock - 1) / kWeightBlock;
}

absl::Status CheckSizes(const ProjectionWeights& weights) {
  if (weights.in == 0 || weights.in % kWeightBlock != 0 || weights.out == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "projection of ", weights.in, " to ", weights.out,
        " features: the first must be a multiple of ", kWeightBlock));
  }
  const size_t codes = size_t{weights.in} * weights.out;
  if (weights.codes.size() != codes) {
    return absl::InvalidArgumentError(
        absl::StrCat("projection weight has ", weights.codes.size(),
                     " codes, must have ", codes));
  }
  const size_t scales = BlockRows(weights) * (weights.in / kWeightBlock);
  if (weights.scales.size() != scales) {
    return absl::InvalidArgumentError(
        absl::StrCat("projection weight has ", weights.scales.size(),
                     " scales, must have ", scales));
  }
  return absl::OkStatus();
}

absl::Status CheckScales(const ProjectionWeights& weights) {
  const auto nan = std::find(weights.scales.begin(), weights.scales.end(), 255);
  if (nan == weights.scales.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("scale ", nan - weights.scales.begin(),
                   " of the projection weight is NaN (255)"));
}

bool HasNan(absl::Span<const uint8_t> codes) {
  uint8_t nan = 0;
  for (const uint8_t code : codes) nan |= (code & 0x7F) == 0x7F ? 1 : 0;
  return nan != 0;
}

absl::Status CheckCodes(const ProjectionWeights& weights, ThreadPool* pool) {
  const size_t rows = BlockRows(weights);
  const size_t row_codes = size_t{weights.in} * kWeightBlock;
  std::atomic<size_t> nan_row{rows};
  pool->ParallelFor(rows, [&](size_t row) {
    if (HasNan(weights.codes.subspan(row * row_codes, row_codes))) {
      nan_row.store(row);
    }
  });
  const size_t row = nan_row.load();
  if (row == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "projection weight has NaN codes among rows ", row * kWeightBlock, " to ",
      std::min<size_t>(weights.out, (row + 1) * kWeightBlock) - 1));
}

}  // namespace

absl::Status CheckProjectionWeights(const ProjectionWeights& weights,
                                    ThreadPool* pool) {
  ENGRAM_RETURN_IF_ERROR(CheckSizes(weights));
  ENGRAM_RETURN_IF_ERROR(CheckScales(weights));
  return CheckCodes(weights, pool);
}

}  // namespace engram
