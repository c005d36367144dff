#include "engram_client/plan/check_gather.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

absl::Status CheckRows(const TableInfo& table, const TableInfo::Layer& info,
                       absl::Span<const RowId> rows) {
  const auto bad = std::find_if(rows.begin(), rows.end(), [&](RowId row) {
    return row >= info.row_count;
  });
  if (bad == rows.end()) return absl::OkStatus();
  const uint32_t layer = ToInt(info.layer_id);
  return MakeError(
      ErrorReason::kRowOutOfRange,
      absl::StrCat("table ", table.version, ": row ", *bad, " of layer ", layer,
                   ", which has ", info.row_count, " rows"),
      {{"layer", absl::StrCat(layer)},
       {"row", absl::StrCat(*bad)},
       {"rows", absl::StrCat(info.row_count)}});
}

absl::Status CheckLayer(const TableInfo& table, const LayerGather& gather) {
  const uint32_t layer = ToInt(gather.layer);
  const auto info = std::find_if(
      table.layers.begin(), table.layers.end(),
      [&](const TableInfo::Layer& l) { return l.layer_id == gather.layer; });
  if (info == table.layers.end()) {
    return MakeError(
        ErrorReason::kUnknownLayer,
        absl::StrCat("table ", table.version, " has no layer ", layer),
        {{"layer", absl::StrCat(layer)}});
  }
  const uint64_t want = gather.row_ids.size() * table.row_format.row_bytes();
  if (gather.out.size() != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer of layer ", layer, " has ", gather.out.size(),
                     " bytes; ", gather.row_ids.size(), " rows of ",
                     table.row_format.row_bytes(), " bytes need ", want));
  }
  return CheckRows(table, *info, gather.row_ids);
}

}  // namespace

absl::Status CheckGather(const TableInfo& table,
                         absl::Span<const LayerGather> layers) {
  uint64_t rows = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (layers[i].layer != layers[j].layer) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", ToInt(layers[i].layer),
                       " stands twice in one gather; join its rows"));
    }
    rows += layers[i].row_ids.size();
  }
  if (rows > kMaxRowsPerGather) {
    return MakeError(
        ErrorReason::kTooLarge,
        absl::StrCat("gather of ", rows, " rows is above the limit of ",
                     kMaxRowsPerGather),
        {{"what", "rows"},
         {"value", absl::StrCat(rows)},
         {"limit", absl::StrCat(kMaxRowsPerGather)}});
  }
  for (const LayerGather& gather : layers) {
    ENGRAM_RETURN_IF_ERROR(CheckLayer(table, gather));
  }
  return absl::OkStatus();
}

}  // namespace engram
