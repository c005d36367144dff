#include "table_server/loading/available_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/progress.h"

namespace engram {
namespace {

// gRPC's buffers, the program itself.
constexpr uint64_t kReserveBytes = uint64_t{256} << 20;

// These files tell no size, so they are read as streams.
std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> text = ReadSmallFile(path);
  uint64_t value = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &value)) {
    return std::nullopt;
  }
  return value;
}

// Value of `key` in lines of "key value" or "key: value kB".
std::optional<uint64_t> FindValue(const std::string& text,
                                  absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t:"), absl::SkipEmpty());
    uint64_t value = 0;
    if (words.size() < 2 || words[0] != key) continue;
    if (absl::SimpleAtoi(words[1], &value)) return value;
  }
  return std::nullopt;
}

// Names of the files of one cgroup version.
struct CgroupFiles {
  absl::string_view mount;
  absl::string_view limit;
  absl::string_view usage;
  absl::string_view inactive_cache;
  absl::string_view active_cache;
};

constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max",
                                   "memory.current", "inactive_file",
                                   "active_file"};
constexpr CgroupFiles kVersion1 = {
    "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
    "total_inactive_file", "total_active_file"};

// What one group leaves; nothing where it sets no limit.
std::optional<uint64_t> LeftInGroup(const std::string& dir,
                                    const CgroupFiles& files) {
  const auto limit = ReadNumber(absl::StrCat(dir, "/", files.limit));
  const auto usage = ReadNumber(absl::StrCat(dir, "/", files.usage));
  if (!limit.has_value() || !usage.has_value()) return std::nullopt;
  const std::string stat = ReadSmallFile(dir + "/memory.stat").value_or("");
  const uint64_t cache = FindValue(stat, files.inactive_cache).value_or(0) +
                         FindValue(stat, files.active_cache).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

void ApplyGroups(const std::string& root, const CgroupFiles& files,
                 absl::string_view group, AvailableMemory& available) {
  // From the process's own group upwards. In a container the names of groups
  // above are unknown and its own group is mounted at the top.
  std::string name(absl::StripSuffix(group, "/"));
  while (true) {
    const auto left = LeftInGroup(absl::StrCat(root, files.mount, name), files);
    if (left.has_value() && *left < available.bytes) {
      available = {*left, absl::StrCat("the memory limit of cgroup ",
                                       name.empty() ? "/" : name)};
    }
    if (name.empty()) return;
    name.resize(name.rfind('/') == std::string::npos ? 0 : name.rfind('/'));
  }
}

}  // namespace

absl::StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root) {
  const auto meminfo = ReadSmallFile(root + "/proc/meminfo");
  const auto available_kb = FindValue(meminfo.value_or(""), "MemAvailable");
  if (!available_kb.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(root, "/proc/meminfo does not tell MemAvailable"));
  }
  AvailableMemory available{*available_kb << 10, "MemAvailable of the machine"};
  const auto groups = ReadSmallFile(root + "/proc/self/cgroup");
  for (absl::string_view line :
       absl::StrSplit(groups.value_or(""), '\n', absl::SkipEmpty())) {
    // "0::/path" of version 2, "9:memory:/path" of version 1.
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[0] == "0" && parts[1].empty()) {
      ApplyGroups(root, kVersion2, parts[2], available);
    } else if (parts[1] == "memory") {
      ApplyGroups(root, kVersion1, parts[2], available);
    }
  }
  return available;
}

uint64_t MemoryForRows(uint64_t bytes_in_flight,
                       absl::Span<const OtherMemory> others,
                       const AvailableMemory& available) {
  uint64_t taken = bytes_in_flight + kReserveBytes;
  for (const OtherMemory& other : others) taken += other.bytes;
  return available.bytes - std::min(available.bytes, taken);
}

absl::Status CheckMemory(absl::Span<const LayerMemory> layers,
                         uint64_t bytes_in_flight,
                         const AvailableMemory& available,
                         absl::Span<const OtherMemory> others) {
  uint64_t needed = bytes_in_flight + kReserveBytes;
  std::string sum;
  for (const LayerMemory& layer : layers) {
    needed += layer.bytes;
    absl::StrAppend(&sum, FormatBytes(layer.bytes), " for ", layer.partitions,
                    " partitions of layer ", ToInt(layer.layer), " + ");
  }
  for (const OtherMemory& other : others) {
    needed += other.bytes;
    absl::StrAppend(&sum, FormatBytes(other.bytes), " for ", other.what, " + ");
  }
  if (needed <= available.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "too little memory: ", sum, FormatBytes(bytes_in_flight),
      " for calls in flight + ", FormatBytes(kReserveBytes),
      " for everything else = ", FormatBytes(needed), " (", needed,
      " bytes) needed, ", FormatBytes(available.bytes), " (", available.bytes,
      " bytes) available by ", available.limited_by));
}

}  // namespace engram
