#ifndef ENGRAM_TESTS_BENCH_COLD_CONTESTANT_H_
#define ENGRAM_TESTS_BENCH_COLD_CONTESTANT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/bench/row_reader.h"
#include "tests/bench/synthetic_table.h"

namespace engram::bench {

// A table that is on the disk and of which a part has place in memory.
class ColdContestant : public RowReader {
 public:
  struct CacheCounts {
    uint64_t hits = 0;
    uint64_t misses = 0;
  };

  // A gather is split among so many threads; 1: its own does it all. Not while
  // one runs. Those that split by themselves do not care.
  virtual void SetFanOut(size_t /*parts*/) {}
  // Of rows, since it was opened; nothing: it cannot be told.
  virtual std::optional<CacheCounts> cache_counts() const {
    return std::nullopt;
  }
};

struct ColdOptions {
  std::string dir;           // of this contestant alone
  uint64_t cache_bytes = 0;  // of those that have a cache of their own
  size_t threads = 32;       // that read, at most
};

struct ColdKind {
  const char* name;
  // Writes the table to the directory, which is there and empty.
  absl::Status (*prepare)(const SyntheticTable& table, const std::string& dir);
  // `table` must outlive what is opened.
  absl::StatusOr<std::unique_ptr<ColdContestant>> (*open)(
      const SyntheticTable& table, const ColdOptions& options);
};

// The product: hot-row cache above the flat store.
ColdKind ColdStack();
// The easy way: a file with the rows one after another, mapped.
ColdKind ColdMmap();
// RocksDB with its block cache: a value is one row, or as many as a page of the
// disk has place for.
ColdKind ColdRocksDbRows();
ColdKind ColdRocksDbBlocks();

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_COLD_CONTESTANT_H_
