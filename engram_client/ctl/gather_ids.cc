#include "engram_client/ctl/gather_ids.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/tensor_file.h"

namespace engram::ctl {
namespace {

absl::StatusOr<size_t> IndexOf(const TableInfo& table, LayerId layer) {
  std::string known;
  for (size_t i = 0; i < table.layers.size(); ++i) {
    if (table.layers[i].layer_id == layer) return i;
    absl::StrAppend(&known, i > 0 ? ", " : "", ToInt(table.layers[i].layer_id));
  }
  return absl::NotFoundError(absl::StrCat(
      "the table has no layer ", ToInt(layer), "; its layers are ", known));
}

// One layer of hash_ids.
absl::StatusOr<std::vector<int64_t>> ReadHashIds(const SafetensorsFile& file,
                                                 const TableInfo& table,
                                                 size_t layer_index) {
  ENGRAM_ASSIGN_OR_RETURN(const TensorView tensor,
                          FindTensor(file, "hash_ids", {"I64"}, 4));
  const uint64_t layers = table.layers.size();
  const uint64_t columns = table.config.columns();
  ENGRAM_RETURN_IF_ERROR(
      CheckShape(tensor, {tensor.shape[0], tensor.shape[1], layers, columns}));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<int64_t> all,
                          CopyTensor<int64_t>(tensor));
  std::vector<int64_t> ids;
  ids.reserve(all.size() / layers);
  for (size_t at = layer_index * columns; at < all.size();
       at += layers * columns) {
    ids.insert(ids.end(), all.begin() + at, all.begin() + at + columns);
  }
  return ids;
}

}  // namespace

absl::StatusOr<std::vector<RowId>> ReadRowIds(const SafetensorsFile& file,
                                              const TableInfo& table,
                                              LayerId layer) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t index, IndexOf(table, layer));
  const std::string name = LayerTensorName(ToInt(layer), "row_ids");
  std::vector<int64_t> ids;
  if (file.tensors().contains(name)) {
    ENGRAM_ASSIGN_OR_RETURN(const TensorView tensor,
                            FindTensor(file, name, {"I64"}, 1));
    ENGRAM_ASSIGN_OR_RETURN(ids, CopyTensor<int64_t>(tensor));
  } else if (file.tensors().contains("hash_ids")) {
    ENGRAM_ASSIGN_OR_RETURN(ids, ReadHashIds(file, table, index));
  } else {
    return absl::NotFoundError(absl::StrCat("the file has neither a tensor ",
                                            name, " nor a tensor hash_ids"));
  }
  const uint64_t row_count = table.layers[index].row_count;
  std::vector<RowId> rows(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint64_t>(ids[i]) >= row_count) {
      return absl::OutOfRangeError(
          absl::StrCat("row id ", ids[i], " (number ", i, ") of layer ",
                       ToInt(layer), ", which has ", row_count, " rows"));
    }
    rows[i] = static_cast<RowId>(ids[i]);
  }
  return rows;
}

}  // namespace engram::ctl
