#ifndef ENGRAM_CORE_BASE_MALLOC_TUNING_H_
#define ENGRAM_CORE_BASE_MALLOC_TUNING_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace engram {

// Makes malloc keep the memory of large messages for the next ones. As it
// comes, glibc maps every block above 128 KiB anew and unmaps it when it is
// freed, so that each message pays a page fault for every 4 KiB.
//
// For mains, after InitLogging and before there are threads. Logs a warning
// when malloc refuses; does nothing where malloc is not glibc's.
void TuneMallocForLargeMessages();

namespace internal {

struct MallocSetting {
  const char* name = "";
  int parameter = 0;
  int value = 0;
};

// Makes all settings. INTERNAL: `set` refused some, which are named.
absl::Status ApplyMallocSettings(
    absl::Span<const MallocSetting> settings,
    absl::FunctionRef<bool(const MallocSetting&)> set);

// Of the malloc that this program has; none where there is nothing to tune.
absl::Span<const MallocSetting> MallocSettings();
bool SetMalloc(const MallocSetting& setting);
// Blocks that malloc has mapped one by one; 0 where it does not tell.
size_t MappedBlocks();

}  // namespace internal
}  // namespace engram

#endif  // ENGRAM_CORE_BASE_MALLOC_TUNING_H_
