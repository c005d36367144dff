#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ROW_CHECK_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ROW_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/ctl/load_reference.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

// Which rows of a call are compared: rows first, first + step, ... of all its
// rows, those of one layer behind those of the one before.
struct RowSample {
  uint64_t first = 0;
  uint64_t step = 0;  // 0: none, 1: every one
};

// "all", "none" or "sample:N" (one row in N, another one in every call), as
// the step of a sample. INVALID_ARGUMENT names the value.
absl::StatusOr<uint64_t> ParseCheck(absl::string_view text);

// What rows are filled with before they are fetched, so that one that nobody
// wrote is seen: an e4m3 code that is no number, which no sound table has.
inline constexpr std::byte kPoison{0xFF};

// Compares rows of a call with the reference, to the bit.
//
// Immutable. Thread safety: all methods may be called concurrently.
class RowCheck {
 public:
  // `reference` outlives the check; it may be null where nothing is sampled.
  RowCheck(const RowReference* reference, size_t row_bytes)
      : reference_(reference), row_bytes_(row_bytes) {}

  // Fills the rows that `sample` takes with kPoison.
  void Poison(const RowSample& sample, absl::Span<std::byte> rows) const;

  struct Result {
    uint64_t compared = 0;
    uint64_t wrong = 0;
    std::optional<LoadMismatch> first;
  };
  // `rows` has row row_ids[i] in slot i; the first one is row `offset` of the
  // call. The errors of RowReference::Read.
  absl::StatusOr<Result> Compare(LayerId layer, absl::Span<const RowId> row_ids,
                                 absl::Span<const std::byte> rows,
                                 uint64_t offset,
                                 const RowSample& sample) const;

 private:
  LoadMismatch Describe(LayerId layer, RowId row, uint64_t slot, uint64_t rows,
                        absl::Span<const std::byte> wanted,
                        absl::Span<const std::byte> got) const;

  const RowReference* const reference_;
  const size_t row_bytes_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ROW_CHECK_H_
