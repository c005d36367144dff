#include "tests/testing/step_compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/number_formats.h"

namespace engram::test {
namespace {

constexpr double kLeastEqualShare = 0.995;

struct GateLimits {
  double gate;
  double dot;  // which is some 1 in size
};
constexpr GateLimits kOwnLimits = {1e-6, 1e-6};

// One key of kv that is an ulp off moves a dot by some 2^-8 / sqrt(dim) times
// the key's and the stream's share, each up to 4.
GateLimits WantedLimits(uint32_t dim) {
  return {5e-4, 0.1 / std::sqrt(static_cast<double>(dim))};
}

absl::Status Off(absl::string_view where, double got, double wanted,
                 double allowed) {
  return absl::DataLossError(
      absl::StrCat(where, ": ", got, " instead of ", wanted,
                   ", allowed is a difference of ", allowed));
}

// NaN is never near.
bool Near(double got, double wanted, double allowed) {
  return std::fabs(got - wanted) <= allowed;
}

std::string Place(absl::string_view what, size_t token, size_t i) {
  return absl::StrCat(what, " of token ", token, " at ", i);
}

// The gate of one live token and stream in double precision.
double GateInDouble(const GateWeights& weights, absl::Span<const double> h,
                    absl::Span<const float> weight,
                    absl::Span<const uint16_t> key) {
  double hh = 0;
  double kk = 0;
  double dot = 0;
  for (size_t i = 0; i < h.size(); ++i) {
    const double k = Bf16ToFloat(key[i]);
    hh += h[i] * h[i];
    kk += k * k;
    dot += h[i] * weight[i] * k;
  }
  const auto dim = static_cast<double>(weights.dim);
  const double eps = weights.norm_eps;
  dot /= std::sqrt(hh / dim + eps) * std::sqrt(kk / dim + eps) * std::sqrt(dim);
  const double x =
      std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
  return 1 / (1 + std::exp(-x));
}

// What a gate is the sigmoid of the root of, with its sign.
double DotOfGate(double gate) {
  const double root = std::log(gate / (1 - gate));
  return root * std::fabs(root);
}

bool GatesAreNear(Inputs inputs, double got, double wanted,
                  const GateLimits& limits) {
  return Near(got, wanted, limits.gate) ||
         (inputs == Inputs::kRandom &&
          Near(DotOfGate(got), DotOfGate(wanted), limits.dot));
}

absl::Status CompareStreamWithOwnKv(const GateWeights& weights, Inputs inputs,
                                    const StepInput& input,
                                    const StepResult& result, size_t token,
                                    size_t stream) {
  const size_t dim = weights.dim;
  const size_t hc = weights.hc_mult;
  const auto kv = absl::MakeConstSpan(result.kv).subspan(token * dim * (hc + 1),
                                                         dim * (hc + 1));
  const size_t at = (token * hc + stream) * dim;
  std::vector<double> h(dim);
  for (size_t i = 0; i < dim; ++i) {
    h[i] = StreamAt(input.streams, input.dtype, at + i);
  }
  const double gate = GateInDouble(
      weights, h,
      absl::MakeConstSpan(weights.weight).subspan(stream * dim, dim),
      kv.subspan(stream * dim, dim));
  const double ours = result.gate[token * hc + stream];
  if (!GatesAreNear(inputs, ours, gate, kOwnLimits)) {
    return Off(Place("gate", token, stream), ours, gate, kOwnLimits.gate);
  }
  for (size_t i = 0; i < dim; ++i) {
    const double value = Bf16ToFloat(kv[hc * dim + i]);
    const double wanted = h[i] + static_cast<float>(ours * value);
    const double got = StreamAt(result.streams, input.dtype, at + i);
    if (!Near(got, wanted, UlpOf(input.dtype, wanted))) {
      return Off(Place("streams", token, stream * dim + i), got, wanted,
                 UlpOf(input.dtype, wanted));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CompareOutput(absl::string_view what, const std::vector<T>& got,
                           const std::vector<T>& wanted) {
  if (got.size() != wanted.size()) {
    return absl::DataLossError(absl::StrCat(
        what, ": ", got.size(), " values instead of ", wanted.size()));
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(T)) == 0) continue;
    return absl::DataLossError(
        absl::StrCat(what, ": value ", i, " of ", got.size(), " differs"));
  }
  return absl::OkStatus();
}

}  // namespace

double UlpOf(StreamDtype dtype, double value) {
  const int exponent = value == 0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1, exponent - (dtype == StreamDtype::kBf16 ? 7 : 23));
}

absl::StatusOr<uint64_t> CountEqualKv(size_t width,
                                      absl::Span<const uint16_t> kv,
                                      absl::Span<const uint16_t> wanted) {
  if (kv.size() != wanted.size() || kv.size() % width != 0) {
    return absl::DataLossError(absl::StrCat("kv: ", kv.size(),
                                            " values instead of ",
                                            wanted.size(), ", width ", width));
  }
  uint64_t equal = 0;
  for (size_t first = 0; first < kv.size(); first += width) {
    double largest = 0;
    for (size_t i = first; i < first + width; ++i) {
      largest = std::max<double>(largest, std::fabs(Bf16ToFloat(wanted[i])));
    }
    for (size_t i = first; i < first + width; ++i) {
      equal += kv[i] == wanted[i] ? 1 : 0;
      const double got = Bf16ToFloat(kv[i]);
      const double want = Bf16ToFloat(wanted[i]);
      const double allowed =
          std::max(UlpOf(StreamDtype::kBf16, want), 1e-5 * largest);
      if (!Near(got, want, allowed)) {
        return Off(Place("kv", first / width, i - first), got, want, allowed);
      }
    }
  }
  return equal;
}

absl::Status CheckEqualShare(uint64_t equal, uint64_t all) {
  const double share = static_cast<double>(equal) / static_cast<double>(all);
  if (share >= kLeastEqualShare) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("kv: ", equal, " of ", all,
                                          " values are equal, a share of ",
                                          kLeastEqualShare, " must be"));
}

absl::Status CompareWithOwnKv(const GateWeights& weights, Inputs inputs,
                              const StepInput& input,
                              const StepResult& result) {
  for (size_t token = 0; token < input.tokens; ++token) {
    if (!input.Lives(token)) continue;
    for (size_t stream = 0; stream < weights.hc_mult; ++stream) {
      ENGRAM_RETURN_IF_ERROR(CompareStreamWithOwnKv(weights, inputs, input,
                                                    result, token, stream));
    }
  }
  return absl::OkStatus();
}

absl::Status CompareWithWanted(const EngramConfig& config, Inputs inputs,
                               const StepInput& input, const StepResult& result,
                               const StepResult& wanted) {
  ENGRAM_CHECK(result.streams.size() == wanted.streams.size());
  ENGRAM_CHECK(result.gate.size() == wanted.gate.size());
  const size_t dim = config.dim;
  const GateLimits limits = WantedLimits(config.dim);
  for (size_t g = 0; g < wanted.gate.size(); ++g) {
    const size_t token = g / config.hc_mult;
    if (!input.Lives(token)) continue;
    if (!GatesAreNear(inputs, result.gate[g], wanted.gate[g], limits)) {
      return Off(Place("gate", token, g % config.hc_mult), result.gate[g],
                 wanted.gate[g], limits.gate);
    }
    const double gate_error =
        std::fabs(double{result.gate[g]} - wanted.gate[g]);
    const size_t values = token * config.wkv_out() + config.hc_mult * dim;
    for (size_t i = 0; i < dim; ++i) {
      const double value = Bf16ToFloat(wanted.kv[values + i]);
      const double want = StreamAt(wanted.streams, input.dtype, g * dim + i);
      const double got = StreamAt(result.streams, input.dtype, g * dim + i);
      double allowed = UlpOf(input.dtype, want) +
                       wanted.gate[g] * UlpOf(StreamDtype::kBf16, value) +
                       gate_error * std::fabs(value);
      if (inputs == Inputs::kRandom) {
        const double ours = Bf16ToFloat(result.kv[values + i]);
        const double product = wanted.gate[g] * value;
        allowed += wanted.gate[g] * std::fabs(ours - value) +
                   gate_error * std::fabs(ours) +
                   2 * UlpOf(StreamDtype::kF32, product) +
                   UlpOf(input.dtype, want);  // the other side of a power of 2
      }
      if (!Near(got, want, allowed)) {
        return Off(Place("streams", token, g % config.hc_mult * dim + i), got,
                   want, allowed);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CompareDead(const EngramConfig& config, const StepInput& input,
                         const StepResult& result) {
  const size_t bytes = input.stream_bytes();
  const auto is_zero = [](const auto& values, size_t token, size_t width) {
    using T = std::decay_t<decltype(values[0])>;
    const T zero{};
    return std::all_of(&values[token * width], &values[token * width] + width,
                       [&](const T& value) {
                         return std::memcmp(&value, &zero, sizeof(T)) == 0;
                       });
  };
  for (size_t token = 0; token < input.tokens; ++token) {
    if (input.Lives(token)) continue;
    if (std::memcmp(&result.streams[token * bytes],
                    &input.streams[token * bytes], bytes) != 0) {
      return absl::DataLossError(
          absl::StrCat("streams of dead token ", token, " were changed"));
    }
    if (!is_zero(result.gate, token, config.hc_mult) ||
        !is_zero(result.value, token, config.dim)) {
      return absl::DataLossError(
          absl::StrCat("gate or value of dead token ", token, " is not +0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CompareContribution(const EngramConfig& config,
                                 const StepInput& input,
                                 const StepResult& result) {
  const size_t dim = config.dim;
  for (size_t g = 0; g < result.gate.size(); ++g) {
    const size_t token = g / config.hc_mult;
    for (size_t i = 0; i < dim; ++i) {
      const float value = Bf16ToFloat(result.value[token * dim + i]);
      const auto h =
          static_cast<float>(StreamAt(input.streams, input.dtype, g * dim + i));
      const float product = result.gate[g] * value;
      const float sum = h + product;
      const double wanted =
          input.dtype == StreamDtype::kF32 ? sum : RoundToBf16(sum);
      const double got = StreamAt(result.streams, input.dtype, g * dim + i);
      if (!(got == wanted)) {
        return Off(Place("streams against gate * value", token,
                         g % config.hc_mult * dim + i),
                   got, wanted, 0);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CompareBits(const StepResult& result, const StepResult& wanted) {
  ENGRAM_RETURN_IF_ERROR(
      CompareOutput("bytes of streams", result.streams, wanted.streams));
  ENGRAM_RETURN_IF_ERROR(CompareOutput("gate", result.gate, wanted.gate));
  ENGRAM_RETURN_IF_ERROR(CompareOutput("value", result.value, wanted.value));
  return CompareOutput("kv", result.kv, wanted.kv);
}

}  // namespace engram::test
