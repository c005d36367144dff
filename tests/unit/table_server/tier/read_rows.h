#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_READ_ROWS_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_READ_ROWS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/notification.h"
#include "core/model/manifest.h"
#include "table_server/tier/row_tier.h"
#include "tests/testing/eventually.h"

namespace engram::test {

inline std::vector<PartitionRef> AllPartitions(const Manifest& manifest) {
  std::vector<PartitionRef> refs;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      refs.push_back({manifest.layers()[i].layer_id, PartitionId{p}});
    }
  }
  return refs;
}

// A fetch, waited for.
inline absl::Status FetchRows(const RowTier& tier, RowFetch fetch) {
  struct Result {
    absl::Status status;
    Notification done;
  };
  const auto result = std::make_shared<Result>();
  tier.Fetch(std::move(fetch), [result](absl::Status status) {
    result->status = std::move(status);
    result->done.Notify();
  });
  ENGRAM_CHECK(result->done.WaitUntil(Soon()));
  return result->status;
}

// Asks for `row_ids` as a gather does: what is at hand, then what is not.
inline absl::Status ReadRows(const RowTier& tier, size_t layer_index,
                             absl::Span<const RowId> row_ids,
                             absl::Span<std::byte> out, bool is_scan = false) {
  RowFetch fetch{.layer_index = layer_index,
                 .row_ids = row_ids,
                 .out = out,
                 .is_scan = is_scan};
  const absl::Status copied =
      is_scan ? tier.ScanRows(layer_index, row_ids, out, fetch.wanted)
              : tier.CopyRows(layer_index, row_ids, out, fetch.wanted);
  if (!copied.ok() || fetch.wanted.empty()) return copied;
  return FetchRows(tier, std::move(fetch));
}

inline absl::Span<std::byte> BytesOf(std::string& rows) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size());
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_READ_ROWS_H_
