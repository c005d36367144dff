#ifndef ENGRAM_TABLE_SERVER_TIER_TIER_STACK_H_
#define ENGRAM_TABLE_SERVER_TIER_TIER_STACK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cache/row_cache.h"
#include "core/model/manifest.h"
#include "table_server/store/local_store.h"
#include "table_server/tier/damaged_copies.h"
#include "table_server/tier/host_tier.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// More table than memory: partitions in host memory and, of all others, which
// are cold, the rows that are asked for most in a cache and every row in a
// local store.
//
//   CopyRows   host memory --misses--> cache --misses--> the caller
//   Fetch      local store, all rows in parallel --> cache, the caller
//
// A partition is in memory if HostTier has it, else cold. Which of both does
// not change while it is published; a cold one is in the store all that time.
class TierStack final : public RowTier {
 public:
  struct Parts {
    HostTier* host = nullptr;
    RowCache* cache = nullptr;  // null: cold rows are always read
    LocalStore* store = nullptr;
    DamagedCopies* damaged = nullptr;  // told of what is; null: nobody is
  };
  struct Stats {
    uint64_t fetches = 0;
    uint64_t fetched_rows = 0;    // asked for
    uint64_t failed_fetches = 0;  // for whatever reason
  };

  // All parts must outlive the tier. RESOURCE_EXHAUSTED: the cache has no room
  // for the names of the tables.
  static absl::StatusOr<std::unique_ptr<TierStack>> Create(
      const Manifest& manifest, const Parts& parts);

  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  // Passes the cache by: what is in it, and what is not, stays as it is.
  absl::Status ScanRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  void Fetch(RowFetch fetch, OnRows done) const override;
  size_t row_bytes() const override { return parts_.host->row_bytes(); }
  size_t memory_bytes() const override;
  size_t huge_page_bytes() const override {
    return parts_.host->huge_page_bytes();
  }

  Stats stats() const;

 private:
  TierStack(const Parts& parts, std::vector<TableKey> keys);

  // Of the misses from `first` on, drops those that the cache has.
  void LookInCache(size_t layer_index, absl::Span<const RowId> row_ids,
                   absl::Span<std::byte> out, size_t first,
                   std::vector<uint32_t>& misses) const;
  // Of a fetch. Its lease lasts still.
  void HearEnd(const absl::Status& status) const;

  const Parts parts_;
  const std::vector<TableKey> keys_;  // of the cache, by layers
  mutable std::atomic<uint64_t> fetches_{0};
  mutable std::atomic<uint64_t> fetched_rows_{0};
  mutable std::atomic<uint64_t> failed_fetches_{0};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_TIER_STACK_H_
