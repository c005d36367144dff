#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CACHE_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/row_cache.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/plan/gather_plan.h"
#include "engram_client/rpc/call_monitor.h"
#include "engram_client/table_client.h"

namespace engram {

// The row cache of one client: what gathers look into before they ask, and what
// their calls leave their rows in.
//
// Thread safety: all methods may be called concurrently.
class GatherCache {
 public:
  // For the layers of `table`. Counts with the monitor's metrics. The errors of
  // RowCache.
  static absl::StatusOr<std::shared_ptr<GatherCache>> Create(
      uint64_t max_bytes, const TableInfo& table,
      std::shared_ptr<CallMonitor> monitor);

  // Copies the rows that are here to every slot that wants them and leaves them
  // out of `plan`, which is of `layers`. How many distinct ones they are.
  uint64_t Fill(absl::Span<const LayerGather> layers, GatherPlan& plan);

  // Rows of a call that ended well, in the buffers of the gather's layers.
  void Keep(absl::Span<const LayerId> layer_ids, const CallRows& rows,
            absl::Span<const absl::Span<std::byte>> outs);
  // As they lie in the call's own buffer, one after another.
  void KeepPacked(absl::Span<const LayerId> layer_ids, const CallRows& rows,
                  absl::Span<const std::byte> packed);

 private:
  GatherCache(std::unique_ptr<RowCache> cache, size_t row_bytes,
              std::shared_ptr<CallMonitor> monitor)
      : cache_(std::move(cache)),
        row_bytes_(row_bytes),
        monitor_(std::move(monitor)) {}

  // REQUIRES: a layer of the table.
  TableKey KeyOf(LayerId layer) const;
  void Count(const RowCache::Inserted& inserted);

  const std::unique_ptr<RowCache> cache_;
  const size_t row_bytes_;
  const std::shared_ptr<CallMonitor> monitor_;
  std::vector<std::pair<LayerId, TableKey>> keys_;  // constant once created
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CACHE_H_
