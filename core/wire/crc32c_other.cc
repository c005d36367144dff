#include "core/wire/crc32c.h"

namespace engram::internal {

Crc32cFunction HardwareCrc32c() { return nullptr; }

}  // namespace engram::internal
