#include "tests/gpu/check/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/model/number_formats.h"
#include "tests/gpu/check/fill_random_core.h"

namespace engram::gpu_check {
namespace {

constexpr double kTwoPi = 6.283185307179586;

}  // namespace

uint64_t Random::Next() { return RandomWord(seed_, drawn_++); }

float Random::Normal() {
  // Box and Muller; u is never 0.
  const double u = (static_cast<double>(Next() >> 12) + 0.5) * 0x1p-52;
  const double v = static_cast<double>(Next() >> 12) * 0x1p-52;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v));
}

void FillRandomBytes(absl::Span<std::byte> bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = RandomWord(seed, i / 8);
    std::memcpy(&bytes[i], &word, std::min<size_t>(8, bytes.size() - i));
  }
}

std::vector<uint8_t> RandomCodes(Random& random, size_t count) {
  std::vector<uint8_t> codes(count);
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word = random.Next();
    for (size_t j = i; j < std::min(i + 8, count); ++j, word >>= 8) {
      auto code = static_cast<uint8_t>(word);
      if ((code & 0x7F) == 0x7F) code ^= 0x08;  // not NaN
      codes[j] = code;
    }
  }
  return codes;
}

std::vector<uint8_t> RandomScales(Random& random, size_t count, uint8_t least,
                                  uint8_t kinds) {
  std::vector<uint8_t> scales(count);
  for (uint8_t& scale : scales) {
    scale = static_cast<uint8_t>(least + random.Below(kinds));
  }
  return scales;
}

std::vector<std::byte> RandomRows(Random& random, const RowFormat& format,
                                  size_t rows) {
  std::vector<std::byte> packed(rows * format.row_bytes());
  for (size_t row = 0; row < rows; ++row) {
    std::byte* out = packed.data() + row * format.row_bytes();
    if (random.OneIn(64)) continue;  // zeros
    const std::vector<uint8_t> codes = RandomCodes(random, format.code_bytes());
    std::memcpy(out, codes.data(), codes.size());
    for (size_t block = 0; block < format.scale_bytes(); ++block) {
      const uint32_t scale =
          random.OneIn(16) ? 90 + random.Below(23) : 113 + random.Below(7);
      out[format.code_bytes() + block] = std::byte(scale);
    }
  }
  return packed;
}

std::vector<std::byte> RandomStreams(Random& random, StreamDtype dtype,
                                     size_t streams, size_t dim) {
  std::vector<std::byte> bytes(streams * dim * StreamBytes(dtype));
  for (size_t s = 0; s < streams; ++s) {
    if (random.OneIn(50)) continue;  // zeros
    const float scale =
        std::ldexp(1.0F, static_cast<int>(random.Below(13)) - 6);
    for (size_t i = s * dim; i < (s + 1) * dim; ++i) {
      const float value = random.Normal() * scale;
      if (dtype == StreamDtype::kBf16) {
        const uint16_t bits = FloatToBf16(value);
        std::memcpy(&bytes[2 * i], &bits, sizeof(bits));
      } else {
        std::memcpy(&bytes[4 * i], &value, sizeof(value));
      }
    }
  }
  return bytes;
}

std::vector<uint16_t> RandomKv(Random& random, size_t count) {
  std::vector<uint16_t> kv(count);
  for (uint16_t& value : kv) value = FloatToBf16(random.Normal() * 0.25F);
  return kv;
}

std::vector<float> RandomGateWeights(Random& random, size_t count) {
  std::vector<float> weights(count);
  for (float& weight : weights) {
    weight = 0.6F + static_cast<float>(random.Below(1024)) / 1024.0F;
  }
  return weights;
}

std::vector<uint8_t> RandomMask(Random& random, size_t tokens, uint32_t n) {
  std::vector<uint8_t> mask(tokens);
  for (uint8_t& lives : mask) lives = random.OneIn(n) ? 0 : 1;
  if (tokens >= 2) {
    mask.front() = 0;
    mask.back() = 1;
  }
  return mask;
}

}  // namespace engram::gpu_check
