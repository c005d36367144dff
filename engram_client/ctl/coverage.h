#ifndef ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engram_client/ctl/probes.h"

namespace engram::ctl {

struct LayerCoverage {
  uint32_t layer_id = 0;
  uint64_t partitions = 0;
  // partitions_held_by[n]: how many partitions n servers can answer for now.
  std::vector<uint64_t> partitions_held_by;
};

struct TableCoverage {
  std::string version;
  std::vector<LayerCoverage> layers;
};

// Coverage of each table version among the servers that answered, in order of
// first appearance. A draining server answers nearly to its end, and one server
// under two addresses is one holder.
std::vector<TableCoverage> CoverageOf(absl::Span<const ServerProbe> servers);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_
