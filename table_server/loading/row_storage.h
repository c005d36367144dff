#ifndef ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_
#define ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "core/cache/row_cache.h"
#include "core/model/checkpoint.h"
#include "table_server/loading/partition_source.h"
#include "table_server/loading/partition_store.h"
#include "table_server/loading/table_source.h"
#include "table_server/loading/tier_options.h"
#include "table_server/loading/tiered_store.h"
#include "table_server/store/store_stats.h"
#include "table_server/tier/row_tier.h"
#include "table_server/tier/tier_stack.h"

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
    TierOptions tiers;
    size_t load_threads = 1;  // that call the store at once
  };

  // Of a storage with a local store; as at some moments during the call.
  struct Stats {
    TieredStore::Stats tiered;
    TierStack::Stats stack;
    RowCache::Stats cache;  // zeroes: there is none
    StoreStats local;
  };

  // RESOURCE_EXHAUSTED: no addresses for the tables, or no memory for the
  // cache; INVALID_ARGUMENT: options that do not go together; otherwise as
  // OpenLocalStore. `source` must outlive it.
  static absl::StatusOr<std::unique_ptr<RowStorage>> Create(
      const TableSource& source, const Options& options);
  virtual ~RowStorage() = default;

  // Once: the tier that the store fills, which must not be used without it.
  virtual std::unique_ptr<RowTier> TakeTier() = 0;
  virtual PartitionStore& store() = 0;
  // Found in what was loaded, by the manifest's layers.
  virtual std::vector<RowDefects> defects() const = 0;
  // Nothing: there is no local store.
  virtual std::optional<Stats> stats() const { return std::nullopt; }
  // Told of each partition whose rows were asked for and are damaged in the
  // local store, while they are still leased, on a thread of the tier: it is to
  // be freed and loaded anew. Must not block.
  virtual void SetOnDamaged(
      std::function<void(const PartitionRef&)> /*on_damaged*/) {}
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_ROW_STORAGE_H_
