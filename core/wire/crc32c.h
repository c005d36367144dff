#ifndef ENGRAM_CORE_WIRE_CRC32C_H_
#define ENGRAM_CORE_WIRE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace engram {

// CRC32C (Castagnoli) of everything that `crc` covers, then `bytes`. Start
// with 0. Uses the processor's instruction where it has one.
uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes);

namespace internal {

using Crc32cFunction = uint32_t (*)(uint32_t, absl::Span<const std::byte>);

// By table lookup; what machines without the instruction run.
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::Span<const std::byte> bytes);

// Null where this build or this machine has no instruction for it.
Crc32cFunction HardwareCrc32c();

}  // namespace internal
}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_CRC32C_H_
