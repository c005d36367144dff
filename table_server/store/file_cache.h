#ifndef ENGRAM_TABLE_SERVER_STORE_FILE_CACHE_H_
#define ENGRAM_TABLE_SERVER_STORE_FILE_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "table_server/store/store_files.h"

namespace engram {

// Files that stay open between reads: at most so many, and those beyond that
// are in use at the moment. The one that was not wanted for longest is closed.
//
// Thread safety: all methods may be called concurrently.
class FileCache {
 public:
  // Half of what this process may open.
  static size_t DefaultMaxOpen();

  FileCache(StoreFiles& files, size_t max_open);

  // The file of `key`, opened under what `path` gives if it is not open.
  absl::StatusOr<std::shared_ptr<const StoreFile>> Get(
      uint64_t key, absl::FunctionRef<std::string()> path);
  // There is another file under its path: Gets that begin from now on give it.
  void Drop(uint64_t key);

  size_t open() const;
  size_t max_open() const { return kShards * max_open_of_shard_; }

 private:
  using File = std::shared_ptr<const StoreFile>;
  using Order = std::list<std::pair<uint64_t, File>>;  // last used first

  static constexpr size_t kShards = 8;

  struct Shard {
    mutable Mutex mutex;
    Order order ABSL_GUARDED_BY(mutex);
    absl::flat_hash_map<uint64_t, Order::iterator> files ABSL_GUARDED_BY(mutex);
    uint64_t drops ABSL_GUARDED_BY(mutex) = 0;
  };

  Shard& ShardOf(uint64_t key);
  static File Find(Shard& shard, uint64_t key, uint64_t& drops);
  void Keep(Shard& shard, uint64_t key, File file, uint64_t drops);

  StoreFiles& files_;
  const size_t max_open_of_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FILE_CACHE_H_
