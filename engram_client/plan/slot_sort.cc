#include "engram_client/plan/slot_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace engram {
namespace {

// Up to here, comparing all with all beats counting digits.
constexpr size_t kMaxRanked = 64;

// A row id and where it stood: id above, slot below.
using Key = uint64_t;
constexpr int kRowShift = 32;

Key MakeKey(RowId row, size_t slot) { return Key{row} << kRowShift | slot; }
RowId RowOf(Key key) { return static_cast<RowId>(key >> kRowShift); }
uint32_t SlotOf(Key key) { return static_cast<uint32_t>(key); }

constexpr int kRowBits = 32;
constexpr int kMinDigitBits = 6;
constexpr int kMaxDigitBits = 11;  // counters of 8 KiB stay in the L1 cache
constexpr int kMaxDigits = (kRowBits + kMinDigitBits - 1) / kMinDigitBits;

// How the bits in which the ids differ are cut into digits of one width, least
// first. Bits in which none differs are left out.
struct Digits {
  int count = 0;
  int width = 0;
  std::array<int, kMaxDigits> shift;
};

Digits ChooseDigits(RowId differ, size_t count) {
  // With as many values as ids, counting costs as much as moving.
  const int widest = std::clamp(static_cast<int>(std::bit_width(count)),
                                kMinDigitBits, kMaxDigitBits);
  const int bits = std::bit_width(differ) - std::countr_zero(differ);
  const int passes = (bits + widest - 1) / widest;
  Digits digits;
  digits.width = (bits + passes - 1) / passes;
  for (uint64_t left = differ; left != 0;) {
    const int shift = std::countr_zero(left);
    digits.shift[digits.count++] = shift;
    left &= ~uint64_t{0} << (shift + digits.width);
  }
  return digits;
}

// One pass: a stable sort by one digit.
class DigitPass {
 public:
  DigitPass(absl::Span<const RowId> ids, int shift, int width)
      : count_(ids.size()), shift_(shift), mask_((RowId{1} << width) - 1) {
    std::fill_n(next_.begin(), mask_ + 1, 0);
    for (const RowId id : ids) ++next_[(id >> shift) & mask_];
    uint32_t sum = 0;
    for (RowId value = 0; value <= mask_; ++value) {
      sum += std::exchange(next_[value], sum);
    }
  }

  // `load(i)` is the i-th key, `store(at, key)` puts it to its place.
  template <typename Load, typename Store>
  void Run(Load load, Store store) {
    for (size_t i = 0; i < count_; ++i) {
      const Key key = load(i);
      store(next_[(RowOf(key) >> shift_) & mask_]++, key);
    }
  }

 private:
  const size_t count_;
  const int shift_;
  const RowId mask_;
  std::array<uint32_t, size_t{1} << kMaxDigitBits> next_;
};

// The first pass makes the keys and the last takes them apart, on the way.
void RadixSort(absl::Span<const RowId> ids, const Digits& digits,
               uint64_t* scratch, RowId* rows, uint32_t* slots) {
  Key* from = scratch;
  Key* to = scratch + ids.size();
  const auto make = [&](size_t slot) { return MakeKey(ids[slot], slot); };
  const auto load = [&](size_t i) { return from[i]; };
  const auto store = [&](uint32_t at, Key key) { to[at] = key; };
  const auto take_apart = [&](uint32_t at, Key key) {
    rows[at] = RowOf(key);
    slots[at] = SlotOf(key);
  };
  for (int i = 0; i < digits.count; ++i) {
    const bool last = i + 1 == digits.count;
    DigitPass pass(ids, digits.shift[i], digits.width);
    if (i == 0 && last) {
      pass.Run(make, take_apart);
    } else if (i == 0) {
      pass.Run(make, store);
    } else if (!last) {
      pass.Run(load, store);
    } else {
      pass.Run(load, take_apart);
    }
    std::swap(from, to);
  }
}

// A row's place is the number of smaller ones. Quadratic, but no branch depends
// on the ids, and an instruction does several comparisons.
void RankSort(absl::Span<const RowId> ids, RowId* rows, uint32_t* slots) {
  std::array<uint32_t, kMaxRanked> equal_before;
  std::fill_n(equal_before.begin(), ids.size(), 0);
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const RowId row = ids[slot];
    uint32_t smaller = 0;
    for (const RowId other : ids) smaller += other < row ? 1 : 0;
    const uint32_t at = smaller + equal_before[smaller]++;
    rows[at] = row;
    slots[at] = static_cast<uint32_t>(slot);
  }
}

}  // namespace

void SortSlots(absl::Span<const RowId> ids, uint64_t* scratch, RowId* rows,
               uint32_t* slots) {
  if (ids.size() <= kMaxRanked) return RankSort(ids, rows, slots);
  RowId differ = 0;
  for (const RowId id : ids) differ |= id ^ ids[0];
  if (differ == 0) {
    std::copy(ids.begin(), ids.end(), rows);
    std::iota(slots, slots + ids.size(), 0);
    return;
  }
  RadixSort(ids, ChooseDigits(differ, ids.size()), scratch, rows, slots);
}

}  // namespace engram
