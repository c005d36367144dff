#ifndef ENGRAM_TABLE_SERVER_LOADING_TIER_OPTIONS_H_
#define ENGRAM_TABLE_SERVER_LOADING_TIER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace engram {

// Where a server's rows lie. Without a local store all of them are in memory.
struct TierOptions {
  // "flat:DIR" or "rocksdb:DIR": a copy on a local disk, from which a server
  // that starts again loads, and whose rows are read one by one as they are
  // asked for where memory is too small for all. Empty: none.
  std::string store;
  uint64_t max_store_bytes = 0;  // of DIR; 0: no limit
  // Partitions of other table versions that are in DIR and not in use; without
  // it they are left there, and count.
  bool remove_other_versions = false;
  // Rows of partitions that are whole in memory. Nothing: all that there is
  // memory for, beside the cache and what calls may hold; 0: none.
  std::optional<uint64_t> max_host_bytes;
  // The rows of other partitions that are asked for most; 0: none.
  uint64_t cache_bytes = uint64_t{256} << 20;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_TIER_OPTIONS_H_
