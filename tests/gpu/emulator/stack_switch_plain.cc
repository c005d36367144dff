#include <cstddef>

#include "tests/gpu/emulator/fiber.h"

namespace engram::emulator {

void BeforeStackSwitch(void**, const void*, size_t) {}
void AfterStackSwitch(void*, const void**, size_t*) {}

}  // namespace engram::emulator
