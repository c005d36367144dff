#ifndef ENGRAM_CORE_BASE_NUMA_H_
#define ENGRAM_CORE_BASE_NUMA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// The nodes of a machine (CPUs with memory near to them) that a process runs
// on. Nodes without a CPU that it may use are left out.
struct NumaTopology {
  struct Node {
    int id = 0;
    std::vector<int> cpus;  // that the process may use, ascending
    bool has_memory = true;
  };
  std::vector<Node> nodes;  // ascending, at least one

  // What InterleaveOverNodes takes.
  std::vector<int> NodesWithMemory() const;
};

// Of the calling thread on this machine: one node with all its CPUs where the
// kernel does not tell more.
NumaTopology ThisNumaTopology();

// As the kernel describes it in `directory` (/sys/devices/system/node), for a
// process that may use `cpus`. NOT_FOUND: a file is missing, or no node has one
// of the CPUs. INVALID_ARGUMENT: a file is malformed. Messages name the file.
absl::StatusOr<NumaTopology> ReadNumaTopology(const std::string& directory,
                                              absl::Span<const int> cpus);

// The CPUs that the calling thread may use, ascending.
std::vector<int> UsableCpus();

// "0-3,8": numbers below 65536, strictly ascending; empty: none.
// INVALID_ARGUMENT: anything else.
absl::StatusOr<std::vector<int>> ParseNumberList(absl::string_view text);

// Spreads memory that nothing was written to yet over `nodes`, page by page.
// REQUIRES: `memory` starts a page. INVALID_ARGUMENT: no node, or one that no
// machine has. Else what the kernel says; then the memory stays as it was.
absl::Status InterleaveOverNodes(absl::Span<std::byte> memory,
                                 absl::Span<const int> nodes);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_NUMA_H_
