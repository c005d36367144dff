#include "engram_client/ctl/made_up_bytes.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace engram::ctl {
namespace {

// Independent generators side by side: their steps have no order, so that the
// compiler may keep several in one vector register.
constexpr size_t kLanes = 8;
constexpr size_t kStepBytes = kLanes * sizeof(uint64_t);
static_assert(kMadeUpBlockBytes % kStepBytes == 0);

// SplitMix64, as xorshift's authors recommend for seeding.
uint64_t NextSeed(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// xorshift128+, only shifts and sums: no 64-bit product, which SSE2 lacks.
class Generator {
 public:
  Generator(uint64_t seed, uint64_t stream, uint64_t block) {
    uint64_t state = seed;
    state = NextSeed(state) ^ stream;
    state = NextSeed(state) ^ block;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      a_[lane] = NextSeed(state);
      b_[lane] = NextSeed(state);
    }
  }

  void Step(uint64_t* out) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      uint64_t x = a_[lane];
      const uint64_t y = b_[lane];
      a_[lane] = y;
      x ^= x << 23;
      x ^= y ^ (x >> 17) ^ (y >> 26);
      b_[lane] = x;
      out[lane] = x + y;
    }
  }

 private:
  uint64_t a_[kLanes];
  uint64_t b_[kLanes];
};

}  // namespace

void FillRandom(uint64_t seed, uint64_t stream, uint64_t offset,
                absl::Span<uint8_t> out) {
  ENGRAM_CHECK(offset % kMadeUpBlockBytes == 0);
  uint64_t block = offset / kMadeUpBlockBytes;
  while (!out.empty()) {
    Generator generator(seed, stream, block++);
    const size_t size = std::min<size_t>(out.size(), kMadeUpBlockBytes);
    for (size_t at = 0; at < size; at += kStepBytes) {
      uint64_t words[kLanes];
      generator.Step(words);
      std::memcpy(out.data() + at, words, std::min(kStepBytes, size - at));
    }
    out.remove_prefix(size);
  }
}

void ReplaceNanCodes(absl::Span<uint8_t> codes) {
  constexpr uint64_t kMagnitudes = 0x7F7F7F7F7F7F7F7F;
  constexpr uint64_t kOnes = 0x0101010101010101;
  const auto fix = [](uint64_t word) {
    // A byte's top bit is set where its magnitude is 0x7F; no sum carries.
    const uint64_t nan = ((word & kMagnitudes) + kOnes) & ~kMagnitudes;
    return word ^ (nan >> 4);
  };
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= codes.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, codes.data() + at, sizeof(word));
    word = fix(word);
    std::memcpy(codes.data() + at, &word, sizeof(word));
  }
  for (; at < codes.size(); ++at) {
    codes[at] = static_cast<uint8_t>(fix(codes[at]));
  }
}

void SpreadOver(uint8_t first, uint32_t count, absl::Span<uint8_t> bytes) {
  ENGRAM_CHECK(first + count <= 256);
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(first + ((byte * count) >> 8));
  }
}

}  // namespace engram::ctl
