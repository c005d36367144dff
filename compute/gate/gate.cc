#include "compute/gate/gate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "compute/gate/gate_core.h"
#include "core/base/check.h"
#include "core/model/number_formats.h"

namespace engram {
namespace {

// Streams come from message buffers of any alignment.
struct Bf16Stream {
  using Bits = uint16_t;
  static float ToFloat(Bits bits) { return Bf16ToFloat(bits); }
  static Bits FromFloat(float value) { return FloatToBf16(value); }
};

struct F32Stream {
  using Bits = uint32_t;
  static float ToFloat(Bits bits) { return FloatFromBits(bits); }
  static Bits FromFloat(float value) { return BitsFromFloat(value); }
};

template <typename Format>
float Load(const std::byte* stream, size_t i) {
  typename Format::Bits bits;
  std::memcpy(&bits, stream + i * sizeof(bits), sizeof(bits));
  return Format::ToFloat(bits);
}

struct Lanes {
  double stream_square[kGateLanes] = {};
  double key_square[kGateLanes] = {};
  double dot[kGateLanes] = {};
};

// Adds features [first, first + count) to lanes 0 .. count-1.
template <typename Format>
inline void SumFeatures(const std::byte* stream, const float* weight,
                        const uint16_t* key, size_t first, size_t count,
                        Lanes* lanes) {
  for (size_t lane = 0; lane < count; ++lane) {
    const float h = Load<Format>(stream, first + lane);
    const float k = Bf16ToFloat(key[first + lane]);
    lanes->stream_square[lane] += GateSquare(h);
    lanes->key_square[lane] += GateSquare(k);
    lanes->dot[lane] += GateDotTerm(h, weight[first + lane], k);
  }
}

template <typename Format>
GateSums SumStream(const std::byte* stream, const float* weight,
                   const uint16_t* key, size_t dim) {
  Lanes lanes;
  size_t i = 0;
  for (; i + kGateLanes <= dim; i += kGateLanes) {
    SumFeatures<Format>(stream, weight, key, i, kGateLanes, &lanes);
  }
  SumFeatures<Format>(stream, weight, key, i, dim - i, &lanes);
  return {SumLanes(lanes.stream_square), SumLanes(lanes.key_square),
          SumLanes(lanes.dot)};
}

template <typename Format>
void GateToken(const GateWeights& weights, const std::byte* streams,
               const uint16_t* kv, float* gate) {
  const size_t dim = weights.dim;
  const auto inverse_sqrt_dim =
      static_cast<float>(std::pow(static_cast<double>(dim), -0.5));
  for (size_t s = 0; s < weights.hc_mult; ++s) {
    const size_t at = s * dim;
    const GateSums sums =
        SumStream<Format>(streams + at * sizeof(typename Format::Bits),
                          &weights.weight[at], kv + at, dim);
    gate[s] =
        GateFromSums(sums, weights.dim, weights.norm_eps, inverse_sqrt_dim);
  }
}

// Up to kGateLanes features, through arrays of their own: nothing aliases, so
// the loops vectorise. `out` may be `stream`.
template <typename Format>
inline void AddFeatures(const std::byte* stream, float gate,
                        const uint16_t* value, size_t count, std::byte* out) {
  typename Format::Bits bits[kGateLanes];
  std::memcpy(bits, stream, count * sizeof(bits[0]));
  for (size_t i = 0; i < count; ++i) {
    bits[i] = Format::FromFloat(
        AddGated(Format::ToFloat(bits[i]), gate, Bf16ToFloat(value[i])));
  }
  std::memcpy(out, bits, count * sizeof(bits[0]));
}

template <typename Format>
void AddToken(const GateWeights& weights, const std::byte* streams,
              const uint16_t* value, const float* gate, std::byte* out) {
  constexpr size_t kBytes = sizeof(typename Format::Bits);
  const size_t dim = weights.dim;
  for (size_t s = 0; s < weights.hc_mult; ++s) {
    const std::byte* const from = streams + s * dim * kBytes;
    std::byte* const to = out + s * dim * kBytes;
    size_t i = 0;
    for (; i + kGateLanes <= dim; i += kGateLanes) {
      AddFeatures<Format>(from + i * kBytes, gate[s], value + i, kGateLanes,
                          to + i * kBytes);
    }
    AddFeatures<Format>(from + i * kBytes, gate[s], value + i, dim - i,
                        to + i * kBytes);
  }
}

// Sizes of one token, and the number of tokens that all spans must agree on.
struct Shape {
  Shape(const GateWeights& weights, StreamDtype dtype, size_t streams_bytes)
      : stream_bytes(size_t{weights.hc_mult} * weights.dim *
                     StreamBytes(dtype)),
        kv_width(size_t{weights.hc_mult + 1} * weights.dim),
        tokens(streams_bytes / stream_bytes) {
    ENGRAM_CHECK(weights.weight.size() ==
                 size_t{weights.hc_mult} * weights.dim);
    ENGRAM_CHECK(streams_bytes == tokens * stream_bytes);
  }

  size_t stream_bytes;
  size_t kv_width;
  size_t tokens;
};

}  // namespace

void ComputeGate(const GateWeights& weights, StreamDtype dtype,
                 absl::Span<const std::byte> streams,
                 absl::Span<const uint16_t> kv, absl::Span<const uint8_t> mask,
                 absl::Span<float> gate) {
  const Shape shape(weights, dtype, streams.size());
  ENGRAM_CHECK(kv.size() == shape.tokens * shape.kv_width);
  ENGRAM_CHECK(mask.empty() || mask.size() == shape.tokens);
  ENGRAM_CHECK(gate.size() == shape.tokens * weights.hc_mult);
  const auto gate_token = dtype == StreamDtype::kBf16 ? GateToken<Bf16Stream>
                                                      : GateToken<F32Stream>;
  for (size_t m = 0; m < shape.tokens; ++m) {
    float* const out = gate.data() + m * weights.hc_mult;
    if (!mask.empty() && mask[m] == 0) {
      std::fill_n(out, weights.hc_mult, 0.0F);
      continue;
    }
    gate_token(weights, streams.data() + m * shape.stream_bytes,
               kv.data() + m * shape.kv_width, out);
  }
}

void AddContribution(const GateWeights& weights, StreamDtype dtype,
                     absl::Span<const std::byte> streams,
                     absl::Span<const uint16_t> kv,
                     absl::Span<const float> gate,
                     absl::Span<const uint8_t> mask,
                     absl::Span<std::byte> out) {
  const Shape shape(weights, dtype, streams.size());
  ENGRAM_CHECK(kv.size() == shape.tokens * shape.kv_width);
  ENGRAM_CHECK(mask.empty() || mask.size() == shape.tokens);
  ENGRAM_CHECK(gate.size() == shape.tokens * weights.hc_mult);
  ENGRAM_CHECK(out.size() == streams.size());
  const auto add_token =
      dtype == StreamDtype::kBf16 ? AddToken<Bf16Stream> : AddToken<F32Stream>;
  const size_t keys = size_t{weights.hc_mult} * weights.dim;
  for (size_t m = 0; m < shape.tokens; ++m) {
    const std::byte* const from = streams.data() + m * shape.stream_bytes;
    std::byte* const to = out.data() + m * shape.stream_bytes;
    if (!mask.empty() && mask[m] == 0) {
      std::memmove(to, from, shape.stream_bytes);
      continue;
    }
    add_token(weights, from, kv.data() + m * shape.kv_width + keys,
              gate.data() + m * weights.hc_mult, to);
  }
}

}  // namespace engram
