#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_STATS_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_STATS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace engram {

// What a local store has done since it was opened, and how full it is.
struct StoreStats {
  uint64_t reads = 0;       // of blocks, for fetches
  uint64_t read_bytes = 0;  // of fetches and of whole partitions
  uint64_t puts = 0;
  uint64_t put_bytes = 0;  // of rows

  uint64_t read_errors = 0;      // the disk's
  uint64_t corrupt_blocks = 0;   // not what was put
  uint64_t late_fetches = 0;     // DEADLINE_EXCEEDED
  uint64_t refused_fetches = 0;  // RESOURCE_EXHAUSTED
  uint64_t full_puts = 0;        // no room: on the disk, or within the limit
  uint64_t failed_puts = 0;      // for other reasons
  // Partitions that reads found damaged, gone or unreadable for good.
  uint64_t dropped_damaged = 0;

  // When it was opened.
  uint64_t removed_half_written = 0;
  uint64_t removed_damaged = 0;

  uint64_t queued_reads = 0;
  uint64_t max_queued_reads = 0;
  uint64_t open_files = 0;
  uint64_t max_open_files = 0;
  uint64_t partitions = 0;
  uint64_t disk_bytes = 0;
  uint64_t max_bytes = 0;
  // When it was opened; count towards max_bytes.
  uint64_t other_version_bytes = 0;
  uint64_t index_bytes = 0;        // of memory, to find blocks
  uint64_t background_errors = 0;  // that stopped writes until the next one
};

// Where a store counts. Thread safety: all members are atomic.
struct StoreCounters {
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> puts{0};
  std::atomic<uint64_t> put_bytes{0};
  std::atomic<uint64_t> read_errors{0};
  std::atomic<uint64_t> corrupt_blocks{0};
  std::atomic<uint64_t> late_fetches{0};
  std::atomic<uint64_t> refused_fetches{0};
  std::atomic<uint64_t> full_puts{0};
  std::atomic<uint64_t> failed_puts{0};
  std::atomic<uint64_t> dropped_damaged{0};
  std::atomic<uint64_t> removed_half_written{0};
  std::atomic<uint64_t> removed_damaged{0};

  void CountRead(size_t bytes) {
    reads.fetch_add(1, std::memory_order_relaxed);
    read_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Of a read that failed.
  void CountReadError(const absl::Status& status) {
    ++(absl::IsDataLoss(status) ? corrupt_blocks : read_errors);
  }
  // How a fetch ended.
  void CountFetch(const absl::Status& status) {
    if (absl::IsDeadlineExceeded(status)) ++late_fetches;
    if (absl::IsResourceExhausted(status)) ++refused_fetches;
  }
  void CountPut(const absl::Status& status, size_t bytes) {
    if (status.ok()) {
      ++puts;
      put_bytes.fetch_add(bytes);
    } else {
      ++(absl::IsResourceExhausted(status) ? full_puts : failed_puts);
    }
  }

  void CopyTo(StoreStats& stats) const {
    stats.reads = reads;
    stats.read_bytes = read_bytes;
    stats.puts = puts;
    stats.put_bytes = put_bytes;
    stats.read_errors = read_errors;
    stats.corrupt_blocks = corrupt_blocks;
    stats.late_fetches = late_fetches;
    stats.refused_fetches = refused_fetches;
    stats.full_puts = full_puts;
    stats.failed_puts = failed_puts;
    stats.dropped_damaged = dropped_damaged;
    stats.removed_half_written = removed_half_written;
    stats.removed_damaged = removed_damaged;
  }
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_STATS_H_
