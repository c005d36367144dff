#ifndef ENGRAM_COMPUTE_HASH_HASH_CORE_H_
#define ENGRAM_COMPUTE_HASH_HASH_CORE_H_

#include <cstdint>

#include "core/model/number_formats.h"

// The arithmetic of the n-gram hash, for the CPU and, compiled by nvcc, for
// the GPU.

namespace engram {

// Divides by one prime with a multiplication. For d <= 2^l and
// magic = ceil(2^(63+l) / d), floor(h / d) = floor(h * magic / 2^(63+l)) for
// every h < 2^63: magic * d exceeds 2^(63+l) by less than 2^l (Granlund and
// Montgomery 1994, theorem 4.2). d > 2^(l-1) keeps magic within 64 bits.
struct PrimeDivisor {
  uint64_t magic = 0;
  uint32_t shift = 0;  // l - 1: the high half of the product has 2^64 taken off
  uint32_t prime = 0;
};

// REQUIRES: 2 <= prime.
inline PrimeDivisor MakePrimeDivisor(uint32_t prime) {
  uint32_t log2 = 1;
  while (log2 < 32 && (uint64_t{1} << log2) < prime) ++log2;
  const auto power = static_cast<unsigned __int128>(1) << (63 + log2);
  return {static_cast<uint64_t>((power + prime - 1) / prime), log2 - 1, prime};
}

ENGRAM_HOST_DEVICE inline uint64_t HighHalf(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

// The low 32 bits of floor(hash / prime), which are all that the remainder
// needs. REQUIRES: hash < 2^63.
ENGRAM_HOST_DEVICE inline uint32_t QuotientLow(uint64_t hash, uint64_t magic,
                                               uint32_t shift) {
  return static_cast<uint32_t>(HighHalf(hash, magic) >> shift);
}

// hash % prime + offset, below 2^32 because every row id is.
ENGRAM_HOST_DEVICE inline uint32_t ColumnRow(uint64_t hash,
                                             uint32_t quotient_low,
                                             uint32_t prime, uint32_t offset) {
  return static_cast<uint32_t>(hash) - quotient_low * prime + offset;
}

// One more lookback of the rolling hash. Products stay below 2^63 by the
// choice of the multipliers.
ENGRAM_HOST_DEVICE inline uint64_t RollHash(uint64_t hash, uint32_t token,
                                            uint64_t multiplier) {
  return hash ^ (token * multiplier);
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_HASH_CORE_H_
