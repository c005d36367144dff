#ifndef ENGRAM_CORE_MODEL_NUMPY_RANDOM_H_
#define ENGRAM_CORE_MODEL_NUMPY_RANDOM_H_

#include <cstdint>

namespace engram {

// What numpy.random.default_rng(seed) draws, bit for bit: PCG64 (XSL-RR
// 128/64) seeded through SeedSequence, bounded integers by Lemire's method.
// The model's hash multipliers were drawn so.
//
// Thread safety: none.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  // The next of integers(0, bound, dtype=int64). REQUIRES: bound >= 1.
  int64_t Integer(int64_t bound);

 private:
  void Step();
  uint64_t Next64();
  uint32_t Next32();
  uint32_t Bounded32(uint32_t bound);
  uint64_t Bounded64(uint64_t bound);

  unsigned __int128 state_ = 0;
  unsigned __int128 increment_ = 0;
  // Upper half of a 64-bit draw whose lower half Next32 gave.
  uint32_t kept_ = 0;
  bool has_kept_ = false;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_NUMPY_RANDOM_H_
