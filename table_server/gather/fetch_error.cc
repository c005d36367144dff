#include "table_server/gather/fetch_error.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

constexpr size_t kNamed = 4;  // partitions
constexpr auto kWithoutPayloads = absl::StatusToStringMode::kWithNoExtraData;

std::string Describe(const FetchedRows& rows) {
  const std::string partitions = absl::StrJoin(
      rows.partitions, ", ", [](std::string* out, PartitionId partition) {
        absl::StrAppend(out, ToInt(partition));
      });
  return absl::StrCat(
      rows.count, " rows of layer ", ToInt(rows.layer),
      rows.partitions.size() == 1 ? " partition " : " partitions ", partitions,
      rows.more_partitions ? " and others" : "", " of table version ",
      rows.manifest->version());
}

}  // namespace

FetchedRows NameRows(const RowFetch& fetch, const Manifest& manifest) {
  FetchedRows rows{.manifest = &manifest,
                   .layer = manifest.layers()[fetch.layer_index].layer_id,
                   .count = fetch.wanted.size()};
  for (const uint32_t i : fetch.wanted) {
    const PartitionId partition{static_cast<uint32_t>(
        uint64_t{fetch.row_ids[i]} / manifest.partition_rows())};
    const auto known =
        std::find(rows.partitions.begin(), rows.partitions.end(), partition);
    if (known != rows.partitions.end()) continue;
    rows.more_partitions = rows.partitions.size() == kNamed;
    if (rows.more_partitions) break;
    rows.partitions.push_back(partition);
  }
  return rows;
}

absl::Status FetchError(const absl::Status& status, const FetchedRows& rows,
                        const std::string& server_name,
                        absl::Duration retry_after) {
  const std::string message =
      absl::StrCat("server ", server_name, " could not read ", Describe(rows),
                   ": ", status.ToString(kWithoutPayloads));
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return absl::Status(status.code(), message);
    case absl::StatusCode::kResourceExhausted:
      return WithRetryAfter(MakeError(ErrorReason::kOverloaded, message),
                            retry_after);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace engram
