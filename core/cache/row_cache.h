#ifndef ENGRAM_CORE_CACHE_ROW_CACHE_H_
#define ENGRAM_CORE_CACHE_ROW_CACHE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/base/page_buffer.h"
#include "core/cache/cache_key.h"
#include "core/cache/cache_layout.h"
#include "core/cache/cache_shard.h"

namespace engram {

// The rows that are asked for most, of any versions and layers, in memory of a
// fixed size. Which rows stay, and the paper that says why: CacheShard.
//
// A row is found by its whole key, table version, layer and row id: nothing
// about hashes can make it another row. Rows of a key never change, so nothing
// is ever invalidated; those of versions that nobody asks for age out.
//
// Thread safety: all methods may be called concurrently. Lookup takes no lock,
// and waits for nobody: a row that is written just then is a miss. Insert
// leaves out what it would have to wait for.
class RowCache {
 public:
  struct Options {
    uint64_t max_bytes = 0;  // of everything: rows, index, names of tables
    size_t row_bytes = 0;
  };

  // As they were at some moments during the call.
  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t inserts = 0;    // rows that came in
    uint64_t evictions = 0;  // rows that gave them their place
    // Rows left out: others were inserting, or their neighbours are in use.
    uint64_t dropped = 0;
    uint64_t rows = 0;   // there are
    uint64_t slots = 0;  // and may be
    uint64_t bytes = 0;  // allocated; at most max_bytes
  };

  // What one Insert did.
  struct Inserted {
    uint64_t inserts = 0;
    uint64_t evictions = 0;
    uint64_t dropped = 0;
  };

  // INVALID_ARGUMENT: max_bytes holds not one row; the message has the sums.
  // RESOURCE_EXHAUSTED: the kernel refused the memory.
  static absl::StatusOr<std::unique_ptr<RowCache>> Create(Options options);
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  // The key of a layer of a version; the same for the same. A key is never
  // given to another. RESOURCE_EXHAUSTED: the names take all that they may, a
  // 128th of max_bytes and 1 KiB.
  absl::StatusOr<TableKey> KeyOf(std::string_view version, LayerId layer);

  // Copies each row that is here to its slot of `out`: row i to `slots[i]`, or
  // to i where `slots` is empty. Appends the indices of all others to
  // `misses`, ascending; what their slots of `out` have then is unspecified.
  // REQUIRES: `slots` empty or as many as `row_ids`; `out` reaches as far as
  // they do.
  void Lookup(TableKey table, absl::Span<const RowId> row_ids,
              absl::Span<const uint32_t> slots, absl::Span<std::byte> out,
              std::vector<uint32_t>& misses);

  // Takes in what the policy lets in. `rows` is as `out` of Lookup, and is
  // not kept.
  Inserted Insert(TableKey table, absl::Span<const RowId> row_ids,
                  absl::Span<const uint32_t> slots,
                  absl::Span<const std::byte> rows);

  Stats stats() const;

 private:
  struct alignas(64) Line {
    std::array<uint64_t, 8> words;
  };
  struct alignas(128) Counts {
    std::atomic<uint64_t> hits{0};
    std::atomic<uint64_t> misses{0};
    std::atomic<uint64_t> inserts{0};
    std::atomic<uint64_t> evictions{0};
    std::atomic<uint64_t> dropped{0};
  };
  static constexpr size_t kCounts = 16;

  RowCache(Options options, const CacheLayout& layout, uint64_t max_name_bytes);
  absl::Status Allocate();
  CacheTables TablesIn(uint64_t* slab) const;
  CacheShard& ShardOf(uint64_t bucket) {
    return *shards_[bucket / layout_.buckets_per_shard];
  }
  static void CountInto(Inserted& inserted, CacheShard::Outcome outcome);
  Counts& CountsHere();

  const Options options_;
  const CacheLayout layout_;
  const uint64_t max_name_bytes_;
  PageBuffer pages_;
  std::unique_ptr<Line[]> lines_;
  std::optional<CacheTables> tables_;  // in pages or lines
  std::vector<std::unique_ptr<CacheShard>> shards_;
  std::array<Counts, kCounts> counts_;

  mutable Mutex mutex_;
  std::vector<std::pair<std::string, LayerId>> names_ ABSL_GUARDED_BY(mutex_);
  uint64_t name_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_ROW_CACHE_H_
