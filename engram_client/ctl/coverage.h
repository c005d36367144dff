#ifndef ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace engram::ctl {

// What one table server said of itself.
struct ServerProbe {
  struct Layer {
    uint32_t layer_id = 0;
    std::vector<bool> held;  // one a partition
  };
  std::string address;
  std::string error;  // why it said nothing; empty: the rest is known
  std::string name;
  std::string version;
  uint64_t instance_id = 0;
  bool ready = false;
  bool draining = false;
  std::vector<Layer> layers;

  uint64_t partitions_held() const;
};

// What one compute worker said of itself.
struct WorkerProbe {
  std::string address;
  std::string error;
  std::string name;
  std::string version;
  bool ready = false;
  std::vector<uint32_t> layer_ids;
};

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
// first appearance. A draining server refuses gathers and one server under
// two addresses is one holder.
std::vector<TableCoverage> CoverageOf(absl::Span<const ServerProbe> servers);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_COVERAGE_H_
