#include <malloc.h>

#include <array>

#include "core/base/malloc_tuning.h"

namespace engram::internal {
namespace {

constexpr std::array kSettings = {
    // The most that every glibc takes: half of what an arena can map at once.
    MallocSetting{"M_MMAP_THRESHOLD", M_MMAP_THRESHOLD, 32 << 20},
    // Above what an arena other than the first can hold (64 MiB), so that the
    // memory of messages is not given back between two of them.
    MallocSetting{"M_TRIM_THRESHOLD", M_TRIM_THRESHOLD, 256 << 20},
    // A few of the largest usual messages a system call. Only what is written
    // to takes memory.
    MallocSetting{"M_TOP_PAD", M_TOP_PAD, 16 << 20},
};

}  // namespace

absl::Span<const MallocSetting> MallocSettings() { return kSettings; }

bool SetMalloc(const MallocSetting& setting) {
  return mallopt(setting.parameter, setting.value) == 1;
}

size_t MappedBlocks() { return mallinfo2().hblks; }

}  // namespace engram::internal
