#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REFERENCE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/row_format.h"
#include "engram_client/table_client.h"

namespace engram::ctl {

// The rows as they should be, from elsewhere than the servers.
//
// Immutable. Thread safety: all methods may be called concurrently.
class RowReference {
 public:
  virtual ~RowReference() = default;

  // Table version id of these rows.
  virtual const std::string& version() const = 0;
  // Writes row row_ids[i] to slot i of `out`. DATA_LOSS: a file of the
  // checkpoint was truncated.
  // REQUIRES: layer and rows are the table's, `out` has their size.
  virtual absl::Status Read(LayerId layer, absl::Span<const RowId> row_ids,
                            absl::Span<std::byte> out) const = 0;
};

// Rows of a checkpoint's mapped files, with the version of its manifest. The
// errors of opening it; NOT_FOUND: it has no manifest; FAILED_PRECONDITION:
// the manifest is of another checkpoint, or of a synthetic table.
absl::StatusOr<std::unique_ptr<RowReference>> OpenCheckpointReference(
    const std::string& dir);

// Rows that `--source synthetic:SEED` serves. FAILED_PRECONDITION naming both
// versions: `table` is not the synthetic table of this seed.
absl::StatusOr<std::unique_ptr<RowReference>> MakeSyntheticReference(
    const TableInfo& table, uint64_t seed);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REFERENCE_H_
