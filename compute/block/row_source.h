#ifndef ENGRAM_COMPUTE_BLOCK_ROW_SOURCE_H_
#define ENGRAM_COMPUTE_BLOCK_ROW_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/row_format.h"

namespace engram {

// A fetch in flight. Destroying it cancels, and waits until nothing writes to
// the caller's buffer any more.
class RowFetch {
 public:
  virtual ~RowFetch() = default;
  virtual void Cancel() = 0;
};

// Where the block gets packed rows from: remote table servers, or a local
// checkpoint (tests and in-process use).
//
// Thread safety: all methods may be called concurrently.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // Starts to copy row row_ids[i] to slot i of `out`; ids may repeat. Both are
  // the caller's and must stay until `done` was called or the returned fetch
  // was destroyed. `done` is called exactly once, perhaps before Fetch
  // returns, and must not block. OK: every row is in place; otherwise the
  // contents of `out` are unspecified.
  // REQUIRES: out.size() == row_ids.size() * row_format().row_bytes().
  virtual std::unique_ptr<RowFetch> Fetch(
      LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
      absl::Time deadline, absl::AnyInvocable<void(absl::Status)> done) = 0;

  virtual const RowFormat& row_format() const = 0;
  // Table version id that every fetch is answered from.
  virtual const std::string& version() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_ROW_SOURCE_H_
