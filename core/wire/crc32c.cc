#include "core/wire/crc32c.h"

#include <array>

namespace engram {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

}  // namespace

namespace internal {

uint32_t ExtendCrc32cByTable(uint32_t crc, absl::Span<const std::byte> bytes) {
  uint32_t state = ~crc;
  for (const std::byte byte : bytes) {
    state = (state >> 8) ^ kTable[(state ^ static_cast<uint32_t>(byte)) & 0xFF];
  }
  return ~state;
}

}  // namespace internal

uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes) {
  static const internal::Crc32cFunction function =
      internal::HardwareCrc32c() != nullptr ? internal::HardwareCrc32c()
                                            : &internal::ExtendCrc32cByTable;
  return function(crc, bytes);
}

}  // namespace engram
