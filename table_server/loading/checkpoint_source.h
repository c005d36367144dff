#ifndef ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_

#include <string>

#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/loading/partition_source.h"

namespace engram {

// Packs a partition's rows out of the files of a checkpoint. DATA_LOSS when a
// file was cut while it was read.
class CheckpointSource final : public PartitionSource {
 public:
  // Both must outlive the source. REQUIRES: the manifest is the checkpoint's.
  CheckpointSource(const Checkpoint& checkpoint, const Manifest& manifest);

  std::string description() const override { return checkpoint_.dir(); }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;

 private:
  const Checkpoint& checkpoint_;
  const Manifest& manifest_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_
