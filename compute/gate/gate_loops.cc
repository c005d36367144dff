#include "compute/gate/gate_loops.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/gate/gate_core.h"
#include "compute/gate/stream_dtype.h"
#include "core/model/number_formats.h"

// Plain loops, which the compiler vectorises anew for each target. Left out:
// what adds nothing to the target below it.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/gate/gate_loops.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace engram {
namespace HWY_NAMESPACE {
namespace {

struct Bf16Stream {
  using Bits = uint16_t;
  static HWY_INLINE float ToFloat(Bits bits) { return Bf16ToFloat(bits); }
  static HWY_INLINE Bits FromFloat(float value) { return FloatToBf16(value); }
};

struct F32Stream {
  using Bits = uint32_t;
  static HWY_INLINE float ToFloat(Bits bits) { return FloatFromBits(bits); }
  static HWY_INLINE Bits FromFloat(float value) { return BitsFromFloat(value); }
};

struct PartialSums {
  double stream_square[kGateSums] = {};
  double key_square[kGateSums] = {};
  double dot[kGateSums] = {};
};

// Adds features [first, first + count) to sums 0 .. count-1.
template <typename Format>
HWY_INLINE void SumFeatures(const std::byte* stream, const float* weight,
                            const uint16_t* key, size_t first, size_t count,
                            PartialSums* sums) {
  for (size_t j = 0; j < count; ++j) {
    typename Format::Bits bits;
    std::memcpy(&bits, stream + (first + j) * sizeof(bits), sizeof(bits));
    const float h = Format::ToFloat(bits);
    const float k = Bf16ToFloat(key[first + j]);
    sums->stream_square[j] += GateSquare(h);
    sums->key_square[j] += GateSquare(k);
    sums->dot[j] += GateDotTerm(h, weight[first + j], k);
  }
}

template <typename Format>
GateSums Sum(const std::byte* stream, const float* weight, const uint16_t* key,
             size_t dim) {
  PartialSums sums;
  size_t i = 0;
  for (; i + kGateSums <= dim; i += kGateSums) {
    SumFeatures<Format>(stream, weight, key, i, kGateSums, &sums);
  }
  SumFeatures<Format>(stream, weight, key, i, dim - i, &sums);
  return {AddNeighbours<kGateSums>(sums.stream_square),
          AddNeighbours<kGateSums>(sums.key_square),
          AddNeighbours<kGateSums>(sums.dot)};
}

// Features that are added at a time.
constexpr size_t kAddStep = 32;

// Up to kAddStep features, through arrays of their own: nothing aliases, so
// the loops vectorise.
template <typename Format>
HWY_INLINE void AddFeatures(const std::byte* stream, float gate,
                            const uint16_t* value, size_t count,
                            std::byte* out) {
  typename Format::Bits bits[kAddStep];
  std::memcpy(bits, stream, count * sizeof(bits[0]));
  for (size_t i = 0; i < count; ++i) {
    bits[i] = Format::FromFloat(
        AddGated(Format::ToFloat(bits[i]), gate, Bf16ToFloat(value[i])));
  }
  std::memcpy(out, bits, count * sizeof(bits[0]));
}

template <typename Format>
void Add(const std::byte* stream, float gate, const uint16_t* value, size_t dim,
         std::byte* out) {
  constexpr size_t kBytes = sizeof(typename Format::Bits);
  size_t i = 0;
  for (; i + kAddStep <= dim; i += kAddStep) {
    AddFeatures<Format>(stream + i * kBytes, gate, value + i, kAddStep,
                        out + i * kBytes);
  }
  AddFeatures<Format>(stream + i * kBytes, gate, value + i, dim - i,
                      out + i * kBytes);
}

GateSums SumHere(StreamDtype dtype, const std::byte* stream,
                 const float* weight, const uint16_t* key, size_t dim) {
  return dtype == StreamDtype::kBf16 ? Sum<Bf16Stream>(stream, weight, key, dim)
                                     : Sum<F32Stream>(stream, weight, key, dim);
}

void AddHere(StreamDtype dtype, const std::byte* stream, float gate,
             const uint16_t* value, size_t dim, std::byte* out) {
  const auto add =
      dtype == StreamDtype::kBf16 ? Add<Bf16Stream> : Add<F32Stream>;
  add(stream, gate, value, dim, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace engram
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace engram {

HWY_EXPORT(SumHere);
HWY_EXPORT(AddHere);

GateSums SumStream(StreamDtype dtype, const std::byte* stream,
                   const float* weight, const uint16_t* key, size_t dim) {
  return HWY_DYNAMIC_DISPATCH(SumHere)(dtype, stream, weight, key, dim);
}

void AddStream(StreamDtype dtype, const std::byte* stream, float gate,
               const uint16_t* value, size_t dim, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(AddHere)(dtype, stream, gate, value, dim, out);
}

}  // namespace engram
#endif  // HWY_ONCE
