#ifndef ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_
#define ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/checkpoint.h"
#include "table_server/loading/partition_source.h"
#include "table_server/loading/partition_store.h"
#include "table_server/loading/table_source.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Where a server's rows lie and how they get there, by what its table's source
// is.
class RowStorage {
 public:
  struct Options {
    uint64_t memory_limit_bytes = 0;  // 0: what the machine says
    uint64_t max_bytes_in_flight = 0;
    // Asked for what `source` itself does not give. Must outlive the storage.
    PartitionSource* peers = nullptr;
  };

  // RESOURCE_EXHAUSTED: no addresses for the tables. `source` must outlive it.
  static absl::StatusOr<std::unique_ptr<RowStorage>> Create(
      const TableSource& source, const Options& options);
  virtual ~RowStorage() = default;

  // Once: the tier that the store fills, which must not be used without it.
  virtual std::unique_ptr<RowTier> TakeTier() = 0;
  virtual PartitionStore& store() = 0;
  // Found in what was loaded, by the manifest's layers.
  virtual std::vector<RowDefects> defects() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_
