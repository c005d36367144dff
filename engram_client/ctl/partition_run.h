#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PARTITION_RUN_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PARTITION_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"

namespace engram::ctl {

// Told that bytes have been read, as PartitionSource::Read has it.
using OnBytes = absl::FunctionRef<absl::Status(size_t bytes)>;
// What is done with a partition, given memory for its rows.
using PartitionWork = absl::FunctionRef<absl::Status(
    const PartitionRef& ref, absl::Span<std::byte> packed, OnBytes on_bytes)>;

struct PartitionRunOptions {
  size_t threads = 1;  // each has memory for a partition
  // Both are called by the thread that waits for the others, some ten times a
  // second.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress =
      [](uint64_t, uint64_t) {};
  std::function<bool()> interrupted = [] { return false; };
};

struct PartitionRunResult {
  size_t partitions = 0;  // that are done
  uint64_t bytes = 0;     // of rows of those
  // Told to end before the last was begun; those under way were done.
  bool interrupted = false;
};

// Does `work` for each of `refs`, in their order, several at once. An error of
// one ends the run after those under way, and is returned. REQUIRES: the
// manifest has them.
absl::StatusOr<PartitionRunResult> RunOverPartitions(
    const Manifest& manifest, absl::Span<const PartitionRef> refs,
    PartitionWork work, const PartitionRunOptions& options);

// Of its rows.
uint64_t BytesOf(const Manifest& manifest, const PartitionRef& ref);
uint64_t BytesOf(const Manifest& manifest, absl::Span<const PartitionRef> refs);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PARTITION_RUN_H_
