#ifndef ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_PARTITIONS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_PARTITIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "engram_client/ctl/partition_run.h"
#include "table_server/loading/partition_source.h"
#include "table_server/loading/table_source.h"
#include "table_server/store/local_store.h"

namespace engram::ctl {

// What is compared with a manifest.
struct VerifiedPlace {
  // As PartitionSource::Read.
  std::function<absl::Status(const PartitionRef& ref,
                             absl::Span<std::byte> packed, OnBytes on_bytes)>
      read;
  // Files of a partition, for messages.
  std::function<std::string(const PartitionRef& ref)> files;
};

// All must outlive what is returned. REQUIRES, of a store: it is open to be
// read only.
VerifiedPlace PlaceOfStore(LocalStore& store);
// REQUIRES: `partitions` is of `source`, which has a checkpoint.
VerifiedPlace PlaceOfCheckpoint(const TableSource& source,
                                PartitionSource& partitions);

// A partition that is not what the manifest says.
struct BadPartition {
  PartitionRef ref;
  std::string files;
  // Its bytes are there and wrong, or gone; otherwise they could not be read.
  bool damaged = true;
  std::string error;  // empty: the digests differ
  std::string expected_digest;
  std::string actual_digest;
};

struct VerifyResult {
  PartitionRunResult looked_at;
  uint64_t sound = 0;  // partitions
  uint64_t sound_bytes = 0;
  std::vector<BadPartition> bad;  // ascending
};

// Looks at all of `refs`, whatever is found.
VerifyResult VerifyPartitions(const Manifest& manifest,
                              const VerifiedPlace& place,
                              absl::Span<const PartitionRef> refs,
                              const PartitionRunOptions& options);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_PARTITIONS_H_
