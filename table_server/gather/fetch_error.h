#ifndef ENGRAM_TABLE_SERVER_GATHER_FETCH_ERROR_H_
#define ENGRAM_TABLE_SERVER_GATHER_FETCH_ERROR_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "table_server/tier/row_fetch.h"

namespace engram {

// Which rows a fetch is for, as its error names them.
struct FetchedRows {
  const Manifest* manifest = nullptr;
  LayerId layer{};
  size_t count = 0;
  std::vector<PartitionId> partitions;  // the first few of them
  bool more_partitions = false;         // than those
};

// `manifest` must outlive the result.
FetchedRows NameRows(const RowFetch& fetch, const Manifest& manifest);

// What a caller is told of a fetch that failed with `status`, naming server,
// version, layer and partitions. OVERLOADED with RetryInfo where the tier has
// too much to do, CANCELLED and DEADLINE_EXCEEDED as they are. All else, damage
// too, is UNAVAILABLE: no wrong row was sent, and another server may have the
// right ones.
absl::Status FetchError(const absl::Status& status, const FetchedRows& rows,
                        const std::string& server_name,
                        absl::Duration retry_after);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_FETCH_ERROR_H_
