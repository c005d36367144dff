#include <sanitizer/common_interface_defs.h>

#include <cstddef>

#include "tests/gpu/emulator/fiber.h"

namespace engram::emulator {

void BeforeStackSwitch(void** save, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(save, bottom, bytes);
}

void AfterStackSwitch(void* saved, const void** old_bottom, size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(saved, old_bottom, old_bytes);
}

}  // namespace engram::emulator
