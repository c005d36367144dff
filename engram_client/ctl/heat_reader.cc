#include "engram_client/ctl/heat_reader.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/heat_hash.h"

namespace engram::ctl {

uint64_t ServerHeat::lookups() const {
  uint64_t lookups = 0;
  for (const LayerHeat& layer : layers) {
    lookups = std::accumulate(layer.partition_lookups.begin(),
                              layer.partition_lookups.end(), lookups);
  }
  return lookups;
}

absl::Status HeatReader::SetTable(const v1::GetTableResponse& table) {
  heat_.name = table.server_name();
  heat_.version = table.version();
  heat_.instance_id = table.instance_id();
  heat_.row_bytes = table.row_format().row_bytes();
  uint64_t partitions = 0;
  for (const v1::LayerInfo& layer : table.layers()) {
    partitions += layer.partition_count();
    if (partitions > kMaxPartitions) {
      return absl::InvalidArgumentError(
          absl::StrCat("the table has ", partitions,
                       " partitions or more, the limit is ", kMaxPartitions));
    }
    if (LayerOf(layer.layer_id()) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the table has layer ", layer.layer_id(), " twice"));
    }
    heat_.layers.push_back({layer.layer_id(), layer.row_count(),
                            std::vector<uint64_t>(layer.partition_count())});
  }
  return absl::OkStatus();
}

absl::Status HeatReader::Add(const v1::RecordHeatResponse& message) {
  switch (message.kind_case()) {
    case v1::RecordHeatResponse::kTotals:
      has_totals_ = true;
      heat_.elapsed_ms = message.totals().elapsed_ms();
      heat_.last_hash = message.totals().last_hash();
      heat_.lookups_per_hit = message.totals().lookups_per_hit();
      heat_.hot_missed = message.totals().hot_missed();
      return absl::OkStatus();
    case v1::RecordHeatResponse::kPartitions:
      return AddPartitions(message.partitions());
    case v1::RecordHeatResponse::kSample:
      return AddRows(message.sample(), heat_.sample);
    case v1::RecordHeatResponse::kHot:
      return AddRows(message.hot(), heat_.hot);
    default:  // progress, or of a later release
      return absl::OkStatus();
  }
}

absl::Status HeatReader::Finish() const {
  if (has_totals_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the server ended the recording without telling what it counted");
}

LayerHeat* HeatReader::LayerOf(uint32_t layer_id) {
  for (LayerHeat& layer : heat_.layers) {
    if (layer.layer_id == layer_id) return &layer;
  }
  return nullptr;
}

absl::Status HeatReader::AddPartitions(
    const v1::RecordHeatResponse::PartitionLookups& message) {
  LayerHeat* const layer = LayerOf(message.layer_id());
  const uint64_t end =
      uint64_t{message.first_partition()} + message.lookups_size();
  if (layer == nullptr || end > layer->partition_lookups.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("counts of partitions up to ", end, " of layer ",
                     message.layer_id(), ", which has ",
                     layer == nullptr ? 0 : layer->partition_lookups.size()));
  }
  for (int i = 0; i < message.lookups_size(); ++i) {
    layer->partition_lookups[message.first_partition() + i] =
        message.lookups(i);
  }
  return absl::OkStatus();
}

absl::Status HeatReader::AddRows(
    const v1::RecordHeatResponse::RowCounts& message,
    std::vector<RowHeat>& rows) {
  for (const auto& counts : message.layers()) {
    const LayerHeat* const layer = LayerOf(counts.layer_id());
    if (layer == nullptr || counts.row_ids_size() != counts.lookups_size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          counts.row_ids_size(), " rows with ", counts.lookups_size(),
          " counts of layer ", counts.layer_id(),
          layer == nullptr ? ", which the table does not have" : ""));
    }
    if (rows.size() + counts.row_ids_size() > kMaxRows) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxRows, " rows"));
    }
    for (int i = 0; i < counts.row_ids_size(); ++i) {
      if (counts.row_ids(i) >= layer->row_count) {
        return absl::InvalidArgumentError(
            absl::StrCat("row ", counts.row_ids(i), " of layer ",
                         counts.layer_id(), ", which has ", layer->row_count));
      }
      rows.push_back({HeatKey(LayerId{counts.layer_id()}, counts.row_ids(i)),
                      counts.lookups(i)});
    }
  }
  return absl::OkStatus();
}

}  // namespace engram::ctl
