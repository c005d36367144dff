#include "tests/gpu/check/projection_cases.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compute/dequant/dequant.h"
#include "compute/project/projection.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/number_formats.h"
#include "core/model/row_format.h"
#include "tests/testing/step_compare.h"

namespace engram::gpu_check {

float RandomWeights::At(size_t feature, size_t k) const {
  const uint8_t scale =
      scales[feature / kWeightBlock * (in / kWeightBlock) + k / kWeightBlock];
  return E4m3ToFloat(codes[feature * in + k]) * E8m0ToFloat(scale);
}

RandomWeights MakeWeights(uint32_t in, uint32_t out, Random& random) {
  RandomWeights weights;
  weights.in = in;
  weights.out = out;
  weights.codes = RandomCodes(random, size_t{in} * out);
  const size_t blocks = (size_t{out} + kWeightBlock - 1) / kWeightBlock;
  weights.scales = RandomScales(random, blocks * (in / kWeightBlock), 114, 4);
  return weights;
}

std::vector<uint16_t> RandomTokens(Random& random, size_t tokens, uint32_t in) {
  RowFormat format;
  format.width = in;
  const std::vector<std::byte> rows = RandomRows(random, format, tokens);
  std::vector<float> values(tokens * in);
  DecodeRowsForProjection(format, rows, absl::MakeSpan(values));
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), FloatToBf16);
  return bits;
}

std::vector<uint16_t> InLayout(absl::Span<const uint16_t> values, uint32_t in,
                               size_t first, size_t count, TokenLayout layout) {
  std::vector<uint16_t> placed(FragmentCount(count, in));
  for (size_t token = 0; token < count; ++token) {
    const uint16_t* from = &values[(first + token) * in];
    for (size_t k = 0; k < in; ++k) {
      const size_t at = layout == TokenLayout::kRowMajor
                            ? token * in + k
                            : FragmentIndex(token, k, in);
      placed[at] = from[k];
    }
  }
  return placed;
}

absl::StatusOr<std::vector<uint16_t>> ProjectOnCpu(
    const RandomWeights& weights, absl::Span<const uint16_t> values,
    ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<const Projection> projection,
                          Projection::Create(weights.View(), pool));
  std::vector<float> rows(values.size());
  std::transform(values.begin(), values.end(), rows.begin(), Bf16ToFloat);
  std::vector<uint16_t> kv(values.size() / weights.in * weights.out);
  projection->Project(rows, absl::MakeSpan(kv), pool);
  return kv;
}

absl::Status CompareWithDouble(const RandomWeights& weights,
                               absl::Span<const uint16_t> values,
                               absl::Span<const uint16_t> kv, size_t samples,
                               Random& random) {
  const size_t tokens = values.size() / weights.in;
  ENGRAM_CHECK(kv.size() == tokens * weights.out);
  for (size_t i = 0; i < samples; ++i) {
    const size_t token = random.Below(static_cast<uint32_t>(tokens));
    const size_t feature = random.Below(weights.out);
    double sum = 0;
    double magnitude = 0;
    for (size_t k = 0; k < weights.in; ++k) {
      const double product =
          double{Bf16ToFloat(values[token * weights.in + k])} *
          weights.At(feature, k);
      sum += product;
      magnitude += std::fabs(product);
    }
    const double got = Bf16ToFloat(kv[token * weights.out + feature]);
    const double allowed =
        std::max(test::UlpOf(StreamDtype::kBf16, sum), 1e-5 * magnitude);
    if (!(std::fabs(got - sum) <= allowed)) {
      return absl::DataLossError(absl::StrCat("kv of token ", token, " at ",
                                              feature, ": ", got,
                                              " instead of ", sum,
                                              " (in double precision), allowed "
                                              "is a difference of ",
                                              allowed));
    }
  }
  return absl::OkStatus();
}

}  // namespace engram::gpu_check
