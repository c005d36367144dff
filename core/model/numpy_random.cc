#include "core/model/numpy_random.h"

#include <array>
#include <bit>
#include <cstddef>

#include "core/base/check.h"

namespace engram {
namespace {

constexpr size_t kPoolWords = 4;

// numpy's SeedSequence: spreads the seed over a pool, then draws state words
// from it. Names and constants as in numpy/random/bit_generator.pyx.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    const std::array<uint32_t, kPoolWords> entropy = {
        static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
    uint32_t hash_const = 0x43b0d7e5;
    for (size_t i = 0; i < kPoolWords; ++i) {
      pool_[i] = HashMix(entropy[i], hash_const, 0x931e8875);
    }
    for (size_t from = 0; from < kPoolWords; ++from) {
      for (size_t to = 0; to < kPoolWords; ++to) {
        if (from == to) continue;
        pool_[to] =
            Mix(pool_[to], HashMix(pool_[from], hash_const, 0x931e8875));
      }
    }
  }

  // generate_state(4, uint64): pairs of words, the lower one first.
  std::array<uint64_t, 4> GenerateState() const {
    std::array<uint64_t, 4> state = {};
    uint32_t hash_const = 0x8b51f9dd;
    for (size_t i = 0; i < 2 * state.size(); ++i) {
      const uint64_t word =
          HashMix(pool_[i % kPoolWords], hash_const, 0x58f38ded);
      state[i / 2] |= word << (32 * (i % 2));
    }
    return state;
  }

 private:
  static uint32_t HashMix(uint32_t value, uint32_t& hash_const,
                          uint32_t multiplier) {
    value ^= hash_const;
    hash_const *= multiplier;
    value *= hash_const;
    return value ^ (value >> 16);
  }

  static uint32_t Mix(uint32_t x, uint32_t y) {
    const uint32_t mixed = x * 0xca01f9ddU - y * 0x4973f715U;
    return mixed ^ (mixed >> 16);
  }

  std::array<uint32_t, kPoolWords> pool_ = {};
};

constexpr unsigned __int128 Join(uint64_t high, uint64_t low) {
  return (static_cast<unsigned __int128>(high) << 64) | low;
}

constexpr unsigned __int128 kMultiplier =
    Join(2549297995355413924ULL, 4865540595714422341ULL);

}  // namespace

NumpyRandom::NumpyRandom(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedSequence(seed).GenerateState();
  increment_ = (Join(words[2], words[3]) << 1) | 1;
  Step();
  state_ += Join(words[0], words[1]);
  Step();
}

void NumpyRandom::Step() { state_ = state_ * kMultiplier + increment_; }

uint64_t NumpyRandom::Next64() {
  Step();
  const auto folded =
      static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

uint32_t NumpyRandom::Next32() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const uint64_t drawn = Next64();
  kept_ = static_cast<uint32_t>(drawn >> 32);
  has_kept_ = true;
  return static_cast<uint32_t>(drawn);
}

uint32_t NumpyRandom::Bounded32(uint32_t bound) {
  // (2^32 - bound) % bound products at the low end would be too many.
  const uint32_t threshold = (0U - bound) % bound;
  uint64_t product;
  do {
    product = uint64_t{Next32()} * bound;
  } while (static_cast<uint32_t>(product) < threshold);
  return static_cast<uint32_t>(product >> 32);
}

uint64_t NumpyRandom::Bounded64(uint64_t bound) {
  const uint64_t threshold = (uint64_t{0} - bound) % bound;
  unsigned __int128 product;
  do {
    product = static_cast<unsigned __int128>(Next64()) * bound;
  } while (static_cast<uint64_t>(product) < threshold);
  return static_cast<uint64_t>(product >> 64);
}

int64_t NumpyRandom::Integer(int64_t bound) {
  ENGRAM_CHECK(bound >= 1);
  constexpr int64_t kTwoTo32 = int64_t{1} << 32;
  if (bound == 1) return 0;  // nothing is drawn
  if (bound < kTwoTo32) return Bounded32(static_cast<uint32_t>(bound));
  if (bound == kTwoTo32) return Next32();
  return static_cast<int64_t>(Bounded64(static_cast<uint64_t>(bound)));
}

}  // namespace engram
