#include "table_server/loading/make_partition_source.h"

#include <algorithm>
#include <thread>

#include "table_server/loading/checkpoint_source.h"
#include "table_server/loading/http_checkpoint_source.h"

namespace engram {
namespace {

// A thread that waits for a disk or a network does nothing else.
constexpr size_t kLeastLoads = 8;

}  // namespace

std::unique_ptr<PartitionSource> MakePartitionSource(
    const TableSource& source) {
  if (source.checkpoint.has_value()) {
    return std::make_unique<CheckpointSource>(*source.checkpoint,
                                              source.manifest);
  }
  if (source.http != nullptr) {
    return std::make_unique<HttpCheckpointSource>(*source.http,
                                                  source.manifest);
  }
  return nullptr;
}

size_t LoadThreads() {
  return std::max<size_t>(kLeastLoads, std::thread::hardware_concurrency());
}

}  // namespace engram
