#ifndef ENGRAM_TABLE_SERVER_LOADING_PARTITION_STORE_H_
#define ENGRAM_TABLE_SERVER_LOADING_PARTITION_STORE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// Brings partitions into a server's tier, verified, and takes them away again.
//
// Thread safety: all methods may be called concurrently, for one partition by
// one thread at a time.
class PartitionStore {
 public:
  virtual ~PartitionStore() = default;

  // OK: the tier has every row of `ref` and they are the manifest's. Otherwise
  // nothing of it is left. Blocks; `on_bytes` as PartitionSource::Read has it:
  // what need not be read is not told.
  // FAILED_PRECONDITION and DATA_LOSS: the bytes that are there are not those
  // of the manifest; RESOURCE_EXHAUSTED: no memory for it now; NOT_FOUND,
  // UNAVAILABLE: nobody gives it now.
  virtual absl::Status Load(
      const PartitionRef& ref,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) = 0;
  // REQUIRES: loaded, and no gather reads it any more.
  virtual void Free(const PartitionRef& ref) = 0;
  // What is left to do beside loads, some of it. Called now and then by threads
  // that load. Blocks.
  virtual void Tend() {}

  // RESOURCE_EXHAUSTED, with the sums, when not all of `wanted` can be loaded
  // at once, in memory and on the local disk, as far as the tier uses them,
  // even if all else that is loaded were freed.
  virtual absl::Status CheckFits(absl::Span<const PartitionRef> wanted) = 0;

  // That a partition is read from its source; 0 where none is read.
  virtual uint64_t BytesToLoad(const PartitionRef& ref) const = 0;
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_PARTITION_STORE_H_
