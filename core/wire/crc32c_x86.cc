#include <nmmintrin.h>

#include <cstring>

#include "core/wire/crc32c.h"

namespace engram::internal {
namespace {

__attribute__((target("sse4.2"))) uint32_t ExtendCrc32cSse42(
    uint32_t crc, absl::Span<const std::byte> bytes) {
  uint64_t state = static_cast<uint32_t>(~crc);
  const std::byte* next = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, next, sizeof(word));
    state = _mm_crc32_u64(state, word);
    next += sizeof(word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++next) {
    narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*next));
  }
  return ~narrow;
}

}  // namespace

Crc32cFunction HardwareCrc32c() {
  return __builtin_cpu_supports("sse4.2") ? &ExtendCrc32cSse42 : nullptr;
}

}  // namespace engram::internal
