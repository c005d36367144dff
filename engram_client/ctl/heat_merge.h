#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_MERGE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engram_client/ctl/heat_reader.h"

namespace engram::ctl {

// What several servers counted at the same time, as one. A row that replicas
// were asked for has the sum of their counts.
struct ClusterHeat {
  std::string version;
  uint64_t row_bytes = 0;
  uint64_t lookups = 0;
  uint64_t rows = 0;  // of the table
  std::vector<LayerHeat> layers;
  // Which rows the sample has: those with a hash of at most this.
  uint64_t last_hash = 0;
  std::vector<RowHeat> sample;  // the most lookups first, exact; none with 0
  // The most lookups first, estimates; short by `hot_missed` at most, but for
  // the chance in which one of `lookups_per_hit` was drawn.
  std::vector<RowHeat> hot;
  uint64_t lookups_per_hit = 0;
  uint64_t hot_missed = 0;
};

// Who a server says it is.
struct HeatServer {
  std::string address;
  std::string version;  // of its table
  uint64_t instance_id = 0;
};

// FAILED_PRECONDITION: they serve different tables, or one of them stands
// twice.
absl::Status CheckAlike(absl::Span<const HeatServer> servers);

// Of the servers without an error. FAILED_PRECONDITION: there are none, they
// serve different tables, or one of them stands twice.
absl::StatusOr<ClusterHeat> MergeHeat(absl::Span<const ServerHeat> servers);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_MERGE_H_
