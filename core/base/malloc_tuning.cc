#include "core/base/malloc_tuning.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace engram {

void TuneMallocForLargeMessages() {
  const absl::Status status = internal::ApplyMallocSettings(
      internal::MallocSettings(), internal::SetMalloc);
  if (status.ok()) return;
  spdlog::warn("large messages are slower: {}", std::string(status.message()));
}

namespace internal {

absl::Status ApplyMallocSettings(
    absl::Span<const MallocSetting> settings,
    absl::FunctionRef<bool(const MallocSetting&)> set) {
  std::string refused;
  for (const MallocSetting& setting : settings) {
    if (set(setting)) continue;
    absl::StrAppend(&refused, " ", setting.name, "=", setting.value);
  }
  if (refused.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("malloc refuses", refused));
}

}  // namespace internal
}  // namespace engram
