#ifndef ENGRAM_COMPUTE_BLOCK_LOCAL_ROW_SOURCE_H_
#define ENGRAM_COMPUTE_BLOCK_LOCAL_ROW_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compute/block/row_source.h"
#include "core/model/checkpoint.h"

namespace engram {

// Rows straight from a mapped checkpoint, for tests and in-process use. Fetch
// gathers on the calling thread and is done when it returns.
//
// A fetch fails with NOT_FOUND for a layer without an Engram, OUT_OF_RANGE for
// a row that is not in the table, DATA_LOSS when a file was truncated, and
// DEADLINE_EXCEEDED when the deadline passed before it began.
class LocalRowSource final : public RowSource {
 public:
  // The version is that of the checkpoint's manifest, empty if it has none.
  // An error when the manifest cannot be read or is of another checkpoint.
  static absl::StatusOr<std::unique_ptr<LocalRowSource>> Create(
      std::shared_ptr<const Checkpoint> checkpoint);

  std::unique_ptr<RowFetch> Fetch(
      LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
      absl::Time deadline,
      absl::AnyInvocable<void(absl::Status)> done) override;

  const RowFormat& row_format() const override {
    return checkpoint_->row_format();
  }
  const std::string& version() const override { return version_; }

 private:
  LocalRowSource(std::shared_ptr<const Checkpoint> checkpoint,
                 std::string version)
      : checkpoint_(std::move(checkpoint)), version_(std::move(version)) {}

  const std::shared_ptr<const Checkpoint> checkpoint_;
  const std::string version_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_LOCAL_ROW_SOURCE_H_
