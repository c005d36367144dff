#include "core/base/malloc_tuning.h"

namespace engram::internal {

absl::Span<const MallocSetting> MallocSettings() { return {}; }

bool SetMalloc(const MallocSetting&) { return false; }

size_t MappedBlocks() { return 0; }

}  // namespace engram::internal
