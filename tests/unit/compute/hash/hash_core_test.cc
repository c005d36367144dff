#include "compute/hash/hash_core.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace engram {
namespace {

constexpr uint64_t kMaxHash = (uint64_t{1} << 63) - 1;

uint32_t Remainder(uint64_t hash, const PrimeDivisor& divisor) {
  return ColumnRow(hash, QuotientLow(hash, divisor.magic, divisor.shift),
                   divisor.prime, 0);
}

// Where a wrong reciprocal shows: multiples of the divisor and their
// neighbours, at both ends of the range.
void CheckEdges(uint32_t prime) {
  const PrimeDivisor divisor = MakePrimeDivisor(prime);
  const uint64_t last = kMaxHash / prime;
  for (const uint64_t quotient :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, last / 2, last - 1, last}) {
    for (const int64_t step : {-2, -1, 0, 1, 2}) {
      const uint64_t hash = quotient * prime + step;
      if (hash > kMaxHash) continue;
      ASSERT_EQ(Remainder(hash, divisor), hash % prime)
          << hash << " % " << prime;
    }
  }
  ASSERT_EQ(Remainder(kMaxHash, divisor), kMaxHash % prime) << prime;
}

TEST(HashCoreTest, RemainderIsExactAtTheEdges) {
  for (uint32_t prime = 2; prime < 3000; ++prime) CheckEdges(prime);
  for (uint32_t log2 = 3; log2 < 32; ++log2) {
    for (const int32_t step : {-3, -1, 0, 1, 3}) {
      CheckEdges((uint32_t{1} << log2) + step);
    }
  }
  CheckEdges(16000057);
  CheckEdges(4294967291U);
  CheckEdges(4294967295U);
}

TEST(HashCoreTest, RemainderIsExactForRandomValues) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000000; ++i) {
    const auto prime = static_cast<uint32_t>(random() >> (32 + random() % 30));
    if (prime < 2) continue;
    const uint64_t hash = (random() & kMaxHash) >> (random() % 63);
    ASSERT_EQ(Remainder(hash, MakePrimeDivisor(prime)), hash % prime)
        << hash << " % " << prime;
  }
}

TEST(HashCoreTest, OffsetsReachTheLastRowId) {
  const PrimeDivisor divisor = MakePrimeDivisor(16000057);
  const uint32_t offset = 0xFFFFFFFFU - 16000056U;
  const uint64_t hash = uint64_t{16000057} * 12345678901 + 16000056;
  EXPECT_EQ(ColumnRow(hash, QuotientLow(hash, divisor.magic, divisor.shift),
                      divisor.prime, offset),
            0xFFFFFFFFU);
}

}  // namespace
}  // namespace engram
