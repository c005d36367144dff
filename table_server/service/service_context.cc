#include "table_server/service/service_context.h"

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_crc.h"

namespace engram {

absl::Status ServiceContext::DrainingError() const {
  return MakeError(ErrorReason::kDraining,
                   absl::StrCat("server ", server_name,
                                " is about to leave and takes no new calls"),
                   {{"server", server_name}});
}

std::vector<LayerRowIds> RowIdsOf(const v1::GatherRequest& request) {
  std::vector<LayerRowIds> layers;
  layers.reserve(request.layers_size());
  for (const v1::LayerRows& layer : request.layers()) {
    layers.push_back(
        {LayerId{layer.layer_id()},
         absl::MakeConstSpan(layer.row_ids().data(), layer.row_ids().size())});
  }
  return layers;
}

uint64_t RowCountOf(const v1::GatherRequest& request) {
  uint64_t rows = 0;
  for (const v1::LayerRows& layer : request.layers()) {
    rows += layer.row_ids_size();
  }
  return rows;
}

GatherCrc StartCrc(const std::string& version,
                   const std::vector<LayerRowIds>& layers) {
  GatherCrc crc(version);
  for (const LayerRowIds& layer : layers) {
    crc.AddLayer(layer.layer, layer.row_ids);
  }
  return crc;
}

}  // namespace engram
