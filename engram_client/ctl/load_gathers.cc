#include "engram_client/ctl/load_gathers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/load_layers.h"
#include "engram_client/plan/check_gather.h"

namespace engram::ctl {
namespace {

const TableInfo::Layer& LayerOf(const TableInfo& table, LayerId id) {
  return *std::find_if(
      table.layers.begin(), table.layers.end(),
      [&](const TableInfo::Layer& layer) { return layer.layer_id == id; });
}

std::vector<LayerId> LayersOf(const TableInfo& table) {
  std::vector<LayerId> layers;
  for (const TableInfo::Layer& layer : table.layers) {
    layers.push_back(layer.layer_id);
  }
  return layers;
}

absl::Status CheckCallRows(uint64_t rows) {
  if (rows <= kMaxRowsPerGather) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a call would have ", rows,
                   " rows, the limit of a gather is ", kMaxRowsPerGather));
}

absl::Status CheckMemory(size_t slots, uint64_t slot_bytes, uint64_t slot_rows,
                         uint64_t max_bytes) {
  if (slot_bytes <= max_bytes / slots) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      slots, " calls of up to ", slot_rows, " rows need ",
      FormatBytes(slots * slot_bytes), ", more than --max-memory-mb allows (",
      FormatBytes(max_bytes), "): give fewer --max-in-flight or --rows"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GatherLoad>> GatherLoad::Create(
    const Options& options, TableClient* client,
    std::unique_ptr<RowReference> reference) {
  ENGRAM_ASSIGN_OR_RETURN(
      std::vector<LayerId> layers,
      ChooseLayers(LayersOf(client->table()), options.layers));
  const size_t row_bytes = client->table().row_format.row_bytes();
  const uint64_t slot_rows = LargestSize(options.sizes) * layers.size();
  ENGRAM_RETURN_IF_ERROR(CheckCallRows(slot_rows));
  ENGRAM_RETURN_IF_ERROR(CheckMemory(options.slots,
                                     slot_rows * (row_bytes + sizeof(RowId)),
                                     slot_rows, options.max_memory_bytes));
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer ids,
      PageBuffer::Allocate(options.slots * slot_rows * sizeof(RowId)));
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer rows,
      PageBuffer::Allocate(options.slots * slot_rows * row_bytes));
  // Touched now, so that no call pays for pages.
  std::memset(ids.bytes().data(), 0, ids.bytes().size());
  std::memset(rows.bytes().data(), static_cast<int>(kPoison),
              rows.bytes().size());
  return std::unique_ptr<GatherLoad>(
      new GatherLoad(options, std::move(layers), client, std::move(reference),
                     std::move(ids), std::move(rows)));
}

GatherLoad::GatherLoad(const Options& options, std::vector<LayerId> layers,
                       TableClient* client,
                       std::unique_ptr<RowReference> reference, PageBuffer ids,
                       PageBuffer rows)
    : options_(options),
      layers_(std::move(layers)),
      client_(*client),
      reference_(std::move(reference)),
      row_bytes_(client->table().row_format.row_bytes()),
      check_(reference_.get(), row_bytes_),
      slot_rows_(LargestSize(options.sizes) * layers_.size()),
      slots_(options.slots),
      ids_(std::move(ids)),
      rows_(std::move(rows)) {
  for (const LayerId layer : layers_) {
    draws_.emplace_back(LayerOf(client_.table(), layer).row_count,
                        options_.zipf_exponent);
  }
}

std::vector<std::pair<std::string, uint64_t>> GatherLoad::client_counts()
    const {
  const TableClient::Stats stats = client_.stats();
  return {{"first_calls", stats.first_calls},
          {"retries", stats.retries},
          {"held_retries", stats.held_retries},
          {"hedges", stats.hedges},
          {"hedges_won", stats.hedges_won},
          {"refused_hedges", stats.refused_hedges},
          {"failed_calls", stats.failed_calls},
          {"corrupt_replies", stats.corrupt_replies},
          {"ejections", stats.ejections},
          {"servers_ejected", stats.servers_ejected}};
}

void GatherLoad::Prepare(size_t slot, const LoadCall& call) {
  Slot& state = slots_[slot];
  LoadRandom random(call.seed);
  state.rows_a_layer = options_.sizes[call.size_index].size;
  state.sample.step = options_.sample_step;
  if (state.sample.step > 1) {
    state.sample.first = random.Below(state.sample.step);
    Poison(slot);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    draws_[i].Fill(random, IdsOf(slot, i));
  }
}

void GatherLoad::Start(size_t slot, absl::Time deadline, Done done) {
  std::vector<LayerGather> layers;
  layers.reserve(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers.push_back({layers_[i], IdsOf(slot, i), RowsOf(slot, i)});
  }
  slots_[slot].handle =
      client_.Prefetch(std::move(layers), deadline, std::move(done));
}

LoadAnswer GatherLoad::Finish(size_t slot, const absl::Status& status) {
  LoadAnswer answer;
  const GatherStats stats = slots_[slot].handle->stats();
  slots_[slot].handle.reset();
  answer.server_calls = stats.calls;
  answer.wire_bytes = stats.bytes_received;
  if (status.ok()) {
    answer.units = slots_[slot].rows_a_layer * layers_.size();
    answer.bytes = answer.units * row_bytes_;
    for (size_t i = 0; i < layers_.size(); ++i) CompareLayer(slot, i, answer);
  }
  // Here, where a late call delays no other, unless another sample comes next.
  if (options_.sample_step == 1) Poison(slot);
  return answer;
}

void GatherLoad::Poison(size_t slot) {
  check_.Poison(slots_[slot].sample,
                rows_.bytes().subspan(
                    slot * slot_rows_ * row_bytes_,
                    layers_.size() * slots_[slot].rows_a_layer * row_bytes_));
}

void GatherLoad::CompareLayer(size_t slot, size_t layer_index,
                              LoadAnswer& answer) {
  const absl::StatusOr<RowCheck::Result> result = check_.Compare(
      layers_[layer_index], IdsOf(slot, layer_index), RowsOf(slot, layer_index),
      layer_index * slots_[slot].rows_a_layer, slots_[slot].sample);
  if (!result.ok()) {
    answer.cannot_check.Update(result.status());
    return;
  }
  answer.units_checked += result->compared;
  if (!result->first.has_value()) return;
  if (!answer.mismatch.has_value()) answer.mismatch = result->first;
  answer.mismatch->wrong += result->wrong;
}

absl::Span<RowId> GatherLoad::IdsOf(size_t slot, size_t layer_index) {
  auto* const ids = reinterpret_cast<RowId*>(ids_.bytes().data());
  const uint64_t rows = slots_[slot].rows_a_layer;
  return {ids + slot * slot_rows_ + layer_index * rows, rows};
}

absl::Span<std::byte> GatherLoad::RowsOf(size_t slot, size_t layer_index) {
  const uint64_t rows = slots_[slot].rows_a_layer;
  return rows_.bytes().subspan(
      (slot * slot_rows_ + layer_index * rows) * row_bytes_, rows * row_bytes_);
}

}  // namespace engram::ctl
