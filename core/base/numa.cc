#include "core/base/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr char kNodeDirectory[] = "/sys/devices/system/node";
// Above what Linux can be built for: 8192 CPUs, 1024 nodes.
constexpr int kNumberLimit = 65536;
constexpr size_t kMaxCpus = 8192;
constexpr int kMaxNodes = 1024;
constexpr size_t kMaxFileBytes = 64 << 10;

// The files tell no size, so they are read as streams.
absl::StatusOr<std::vector<int>> ReadNumberList(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  auto numbers = ParseNumberList(absl::StripSuffix(text, "\n"));
  if (!numbers.ok()) return Annotate(numbers.status(), path);
  return numbers;
}

absl::StatusOr<int> ParseNumber(absl::string_view text) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value < kNumberLimit) {
    return static_cast<int>(value);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text.substr(0, 40), "\" is no number below ", kNumberLimit));
}

bool Contains(absl::Span<const int> sorted, int value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

}  // namespace

std::vector<int> NumaTopology::NodesWithMemory() const {
  std::vector<int> ids;
  for (const Node& node : nodes) {
    if (node.has_memory) ids.push_back(node.id);
  }
  return ids;
}

NumaTopology ThisNumaTopology() {
  std::vector<int> cpus = UsableCpus();
  absl::StatusOr<NumaTopology> topology =
      ReadNumaTopology(kNodeDirectory, cpus);
  if (topology.ok()) return *std::move(topology);
  return {{{.id = 0, .cpus = std::move(cpus)}}};
}

absl::StatusOr<NumaTopology> ReadNumaTopology(const std::string& directory,
                                              absl::Span<const int> cpus) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<int> online,
                          ReadNumberList(directory + "/online"));
  // Old kernels do not tell it.
  const absl::StatusOr<std::vector<int>> with_memory =
      ReadNumberList(directory + "/has_memory");
  if (absl::IsInvalidArgument(with_memory.status())) {
    return with_memory.status();
  }
  NumaTopology topology;
  for (const int id : online) {
    ENGRAM_ASSIGN_OR_RETURN(
        std::vector<int> of_node,
        ReadNumberList(absl::StrCat(directory, "/node", id, "/cpulist")));
    std::erase_if(of_node, [&](int cpu) { return !Contains(cpus, cpu); });
    if (of_node.empty()) continue;
    topology.nodes.push_back(
        {.id = id,
         .cpus = std::move(of_node),
         .has_memory = !with_memory.ok() || Contains(*with_memory, id)});
  }
  if (!topology.nodes.empty()) return topology;
  return absl::NotFoundError(
      absl::StrCat(directory, ": no node has a CPU of this process"));
}

std::vector<int> UsableCpus() {
  std::array<cpu_set_t, kMaxCpus / CPU_SETSIZE> sets = {};
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(sets), sets.data()) != 0) return cpus;
  for (size_t cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof(sets), sets.data())) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  return cpus;
}

absl::StatusOr<std::vector<int>> ParseNumberList(absl::string_view text) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    ENGRAM_ASSIGN_OR_RETURN(const int first, ParseNumber(ends.first));
    int last = first;
    if (range.size() != ends.first.size()) {
      ENGRAM_ASSIGN_OR_RETURN(last, ParseNumber(ends.second));
    }
    // Ascending, so a list is never longer than the limit.
    if (last < first || (!numbers.empty() && first <= numbers.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", range, "\" does not ascend"));
    }
    for (int number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

absl::Status InterleaveOverNodes(absl::Span<std::byte> memory,
                                 absl::Span<const int> nodes) {
  constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;  // NOLINT
  std::array<unsigned long, kMaxNodes / kWordBits> mask = {};  // NOLINT
  if (nodes.empty())
    return absl::InvalidArgumentError("no node to put memory on");
  for (const int node : nodes) {
    if (node < 0 || node >= kMaxNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", node, ", but nodes are below ", kMaxNodes));
    }
    mask[node / kWordBits] |= 1UL << (node % kWordBits);
  }
  if (memory.empty()) return absl::OkStatus();
  // The kernel takes one bit less than it is told.
  if (syscall(SYS_mbind, memory.data(), memory.size(), MPOL_INTERLEAVE,
              mask.data(), kMaxNodes + 1, 0) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot interleave ", memory.size(), " bytes over ",
                          nodes.size(), " nodes"));
}

}  // namespace engram
