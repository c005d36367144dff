#include "table_server/store/file_cache.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {

size_t FileCache::DefaultMaxOpen() {
  rlimit limit;
  ENGRAM_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  // More partitions than that has no table.
  constexpr rlim_t kEnough = rlim_t{1} << 20;
  return static_cast<size_t>(std::min(limit.rlim_cur / 2, kEnough));
}

FileCache::FileCache(StoreFiles& files, size_t max_open)
    : files_(files),
      max_open_of_shard_(std::max<size_t>(1, max_open / kShards)) {}

FileCache::Shard& FileCache::ShardOf(uint64_t key) {
  return shards_[(key * 0x9E3779B97F4A7C15) >> 61];
}

FileCache::File FileCache::Find(Shard& shard, uint64_t key, uint64_t& drops) {
  MutexLock lock(&shard.mutex);
  drops = shard.drops;
  const auto found = shard.files.find(key);
  if (found == shard.files.end()) return nullptr;
  shard.order.splice(shard.order.begin(), shard.order, found->second);
  return found->second->second;
}

absl::StatusOr<FileCache::File> FileCache::Get(
    uint64_t key, absl::FunctionRef<std::string()> path) {
  Shard& shard = ShardOf(key);
  uint64_t drops = 0;
  if (File file = Find(shard, key, drops)) return file;
  ENGRAM_ASSIGN_OR_RETURN(File opened, files_.Open(path()));
  Keep(shard, key, opened, drops);
  return opened;
}

// Not if it may have been opened before a Drop.
void FileCache::Keep(Shard& shard, uint64_t key, File file, uint64_t drops) {
  Order closed;  // after the lock
  MutexLock lock(&shard.mutex);
  if (shard.drops != drops || shard.files.contains(key)) return;
  shard.order.emplace_front(key, std::move(file));
  shard.files[key] = shard.order.begin();
  if (shard.order.size() <= max_open_of_shard_) return;
  shard.files.erase(shard.order.back().first);
  closed.splice(closed.begin(), shard.order, std::prev(shard.order.end()));
}

void FileCache::Drop(uint64_t key) {
  Shard& shard = ShardOf(key);
  Order closed;  // after the lock
  MutexLock lock(&shard.mutex);
  ++shard.drops;
  const auto found = shard.files.find(key);
  if (found == shard.files.end()) return;
  closed.splice(closed.begin(), shard.order, found->second);
  shard.files.erase(found);
}

size_t FileCache::open() const {
  size_t open = 0;
  for (const Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    open += shard.order.size();
  }
  return open;
}

}  // namespace engram
