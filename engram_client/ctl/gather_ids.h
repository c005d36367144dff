#ifndef ENGRAM_ENGRAM_CLIENT_CTL_GATHER_IDS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_GATHER_IDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "core/model/safetensors.h"
#include "engram_client/table_client.h"

namespace engram::ctl {

// Row ids of one layer, duplicates kept: `layers.N.row_ids` I64 [n], or the
// layer's part of `hash_ids` I64 [B, T, layers, columns] in that order.
// NOT_FOUND: the table has no such layer, or the file neither tensor.
// INVALID_ARGUMENT: another dtype or shape. OUT_OF_RANGE: an id that is no row
// of the layer.
absl::StatusOr<std::vector<RowId>> ReadRowIds(const SafetensorsFile& file,
                                              const TableInfo& table,
                                              LayerId layer);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_GATHER_IDS_H_
