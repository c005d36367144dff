#include "compute/hash/column_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/hash/hash_core.h"

// Left out: x86 before AVX2, whose emulated 64-bit shifts lose to the scalar
// multiplier; vectors of unknown length; AVX3_DL, which adds nothing here.
#define HWY_DISABLED_TARGETS                                               \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/hash/column_kernel.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace engram {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// Rows of the first `count` columns of a group.
HWY_INLINE void WriteGroup(const ColumnGroup& group, size_t count,
                           uint64_t hash, RowId* out) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t magic = group.magics_high[i] << 32 | group.magics_low[i];
    const auto shift = static_cast<uint32_t>(group.shifts[i]);
    out[i] = ColumnRow(hash, QuotientLow(hash, magic, shift),
                       static_cast<uint32_t>(group.primes[i]),
                       static_cast<uint32_t>(group.offsets[i]));
  }
}

#else

using Tag = hn::CappedTag<uint64_t, ColumnGroup::kColumns>;
using RowTag = hn::Rebind<uint32_t, Tag>;
using Vec = hn::Vec<Tag>;
constexpr size_t kLanes = hn::MaxLanes(Tag());

// The 64-bit products of the low halves.
HWY_INLINE Vec MulLow(Vec a, Vec b) {
  const hn::Repartition<uint32_t, Tag> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
}

// HighHalf of hash_core.h, from products of 32-bit halves: no sum overflows.
HWY_INLINE Vec HighHalves(Vec a_low, Vec a_high, Vec b_low, Vec b_high) {
  const Vec low_mask = hn::Set(Tag(), 0xFFFFFFFF);
  const Vec carry = hn::ShiftRight<32>(MulLow(a_low, b_low));
  const Vec middle = hn::Add(MulLow(a_high, b_low), carry);
  const Vec other = hn::Add(MulLow(a_low, b_high), hn::And(middle, low_mask));
  return hn::Add(MulLow(a_high, b_high), hn::Add(hn::ShiftRight<32>(middle),
                                                 hn::ShiftRight<32>(other)));
}

// Rows of kLanes columns from the first on, for a hash in two halves.
HWY_INLINE auto ColumnRows(const ColumnGroup& group, size_t first, Vec hash,
                           Vec hash_high) {
  const Tag d;
  const Vec high =
      HighHalves(hash, hash_high, hn::Load(d, group.magics_low + first),
                 hn::Load(d, group.magics_high + first));
  const Vec quotient = hn::Shr(high, hn::Load(d, group.shifts + first));
  const Vec product = MulLow(quotient, hn::Load(d, group.primes + first));
  const Vec row =
      hn::Add(hn::Sub(hash, product), hn::Load(d, group.offsets + first));
  return hn::TruncateTo(RowTag(), row);
}

// Rows of the first `count` columns of a group.
HWY_INLINE void WriteGroup(const ColumnGroup& group, size_t count,
                           uint64_t hash, RowId* out) {
  const Vec low = hn::Set(Tag(), hash);
  const Vec high = hn::Set(Tag(), hash >> 32);
  if (count == ColumnGroup::kColumns) {
    for (size_t i = 0; i < ColumnGroup::kColumns; i += kLanes) {
      hn::StoreU(ColumnRows(group, i, low, high), RowTag(), out + i);
    }
    return;
  }
  HWY_ALIGN RowId rows[ColumnGroup::kColumns];
  for (size_t i = 0; i < ColumnGroup::kColumns; i += kLanes) {
    hn::Store(ColumnRows(group, i, low, high), RowTag(), rows + i);
  }
  std::copy_n(rows, count, out);
}

#endif

void HashPositionsHere(const ColumnConstants& constants, const uint32_t* ids,
                       size_t count, RowId* out) {
  const uint64_t* const multipliers = constants.multipliers.data();
  const size_t sizes = constants.multipliers.size();
  const size_t heads = constants.heads;
  for (const uint32_t* newest = ids; newest < ids + count; ++newest) {
    const ColumnGroup* group = constants.groups.data();
    uint64_t hash = RollHash(0, *newest, multipliers[0]);
    for (size_t n = 1; n < sizes; ++n) {
      hash = RollHash(hash, *(newest - n), multipliers[n]);
      for (size_t head = 0; head < heads; head += ColumnGroup::kColumns) {
        const size_t columns = std::min(ColumnGroup::kColumns, heads - head);
        WriteGroup(*group++, columns, hash, out);
        out += columns;
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace engram
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace engram {

HWY_EXPORT(HashPositionsHere);

ColumnConstants::ColumnConstants(const LayerLayout& layout, size_t heads)
    : heads(heads),
      multipliers(layout.multipliers.begin(), layout.multipliers.end()) {
  for (size_t column = 0; column < layout.primes.size(); ++column) {
    const size_t lane = column % heads % ColumnGroup::kColumns;
    if (lane == 0) groups.push_back({});
    const PrimeDivisor divisor = MakePrimeDivisor(layout.primes[column]);
    groups.back().magics_low[lane] = divisor.magic & 0xFFFFFFFF;
    groups.back().magics_high[lane] = divisor.magic >> 32;
    groups.back().shifts[lane] = divisor.shift;
    groups.back().primes[lane] = divisor.prime;
    groups.back().offsets[lane] = layout.offsets[column];
  }
}

void HashPositions(const ColumnConstants& constants, const uint32_t* ids,
                   size_t count, RowId* out) {
  HWY_DYNAMIC_DISPATCH(HashPositionsHere)(constants, ids, count, out);
}

}  // namespace engram
#endif  // HWY_ONCE
