#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_READER_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engram/v1/table.pb.h"

namespace engram::ctl {

// A row by its HeatKey, and how often it was asked for.
struct RowHeat {
  uint64_t key = 0;
  uint64_t lookups = 0;
};

struct LayerHeat {
  uint32_t layer_id = 0;
  uint64_t row_count = 0;
  std::vector<uint64_t> partition_lookups;  // one a partition
};

// What one server counted; table.proto says what the numbers mean.
struct ServerHeat {
  std::string address;
  std::string name;   // empty: it said nothing
  std::string error;  // why there is nothing more; empty: all is there
  std::string version;
  uint64_t instance_id = 0;
  uint64_t row_bytes = 0;
  uint64_t elapsed_ms = 0;
  uint64_t last_hash = 0;
  uint64_t lookups_per_hit = 0;
  uint64_t hot_missed = 0;
  std::vector<LayerHeat> layers;
  std::vector<RowHeat> sample;
  std::vector<RowHeat> hot;

  uint64_t lookups() const;
};

// Makes a ServerHeat of what a server says. Bounded, whatever it says.
class HeatReader {
 public:
  // What a server claims above these is not believed.
  static constexpr uint64_t kMaxPartitions = 1 << 24;
  static constexpr size_t kMaxRows = 1 << 22;

  // INVALID_ARGUMENT: a table of more partitions than that, or of a layer
  // twice.
  absl::Status SetTable(const v1::GetTableResponse& table);

  // INVALID_ARGUMENT: rows or partitions that the table does not have, numbers
  // that do not match, or more of them than a server may send. Progress is
  // passed over.
  absl::Status Add(const v1::RecordHeatResponse& message);

  // All that was added. FAILED_PRECONDITION: the totals are missing.
  absl::Status Finish() const;

  ServerHeat& heat() { return heat_; }

 private:
  absl::Status AddPartitions(
      const v1::RecordHeatResponse::PartitionLookups& message);
  absl::Status AddRows(const v1::RecordHeatResponse::RowCounts& message,
                       std::vector<RowHeat>& rows);
  LayerHeat* LayerOf(uint32_t layer_id);

  ServerHeat heat_;
  bool has_totals_ = false;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_READER_H_
