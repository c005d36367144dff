#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_ROWS_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_ROWS_H_

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/check.h"
#include "core/base/notification.h"
#include "core/model/manifest.h"
#include "core/model/synthetic_rows.h"
#include "table_server/store/local_store.h"
#include "tests/testing/eventually.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

// Rows as a store of `manifest` should have them.
inline std::string MadeRows(const Manifest& manifest, LayerId layer,
                            const std::vector<RowId>& row_ids) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  std::string rows(row_ids.size() * row_bytes, '\0');
  for (size_t i = 0; i < row_ids.size(); ++i) {
    SyntheticRow(7, layer, row_ids[i], manifest.row_format(),
                 absl::MakeSpan(
                     reinterpret_cast<std::byte*>(rows.data()) + i * row_bytes,
                     row_bytes));
  }
  return rows;
}

inline std::string MadePartition(const Manifest& manifest,
                                 const PartitionRef& ref) {
  const size_t layer_index = manifest.IndexOf(ref.layer).value();
  std::vector<RowId> row_ids(manifest.RowsIn(layer_index, ref.partition));
  std::iota(
      row_ids.begin(), row_ids.end(),
      static_cast<RowId>(ToInt(ref.partition) * manifest.partition_rows()));
  return MadeRows(manifest, ref.layer, row_ids);
}

// Rows of width * 33 / 32 bytes, 256 a partition.
inline Manifest MakeWideManifest(uint32_t width) {
  EngramConfig config = PresetConfig("odd").value();
  config.head_dim = width;
  const EngramLayout layout = EngramLayout::Create(config).value();
  std::vector<ManifestLayer> layers;
  for (const LayerLayout& layer : layout.layers()) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  const RowFormat defaults;
  return Manifest::Create(
             config,
             RowFormat::Create(defaults.code_dtype, defaults.scale_dtype, width,
                               defaults.block_size)
                 .value(),
             256, std::move(layers), "synthetic:7")
      .value();
}

inline absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline absl::Status PutMade(LocalStore& store, const Manifest& manifest,
                            const PartitionRef& ref) {
  return store.Put(ref, BytesOf(MadePartition(manifest, ref)));
}

inline absl::StatusOr<std::string> ReadPartition(LocalStore& store,
                                                 const Manifest& manifest,
                                                 const PartitionRef& ref) {
  std::string rows(MadePartition(manifest, ref).size(), '\xEE');
  size_t told = 0;
  const absl::Status status = store.Read(
      ref,
      absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size()),
      [&](size_t bytes) {
        told += bytes;
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  ENGRAM_CHECK(told == rows.size());
  return rows;
}

// A fetch that is out: its memory, and what it was told.
class OutFetch {
 public:
  OutFetch(LocalStore& store, const Manifest& manifest, size_t layer_index,
           std::vector<RowId> row_ids, std::vector<uint32_t> wanted,
           absl::Time deadline = absl::InfiniteFuture())
      : state_(std::make_shared<State>()) {
    state_->row_ids = std::move(row_ids);
    state_->out.assign(
        state_->row_ids.size() * manifest.row_format().row_bytes(), '\xEE');
    store.Fetch(
        {.layer_index = layer_index,
         .row_ids = state_->row_ids,
         .wanted = std::move(wanted),
         .out = absl::MakeSpan(reinterpret_cast<std::byte*>(state_->out.data()),
                               state_->out.size()),
         .deadline = deadline},
        [state = state_,
         caller = std::this_thread::get_id()](absl::Status status) {
          ENGRAM_CHECK(std::this_thread::get_id() != caller);
          state->status = std::move(status);
          state->done.Notify();
        });
  }

  bool IsDone() const { return state_->done.HasBeenNotified(); }
  absl::StatusOr<std::string> Wait() {
    ENGRAM_CHECK(state_->done.WaitUntil(Soon()));
    if (!state_->status.ok()) return state_->status;
    return state_->out;
  }

 private:
  struct State {
    std::vector<RowId> row_ids;
    std::string out;
    absl::Status status;
    Notification done;
  };
  std::shared_ptr<State> state_;
};

// All of them wanted.
inline OutFetch StartFetch(LocalStore& store, const Manifest& manifest,
                           size_t layer_index, std::vector<RowId> row_ids,
                           absl::Time deadline = absl::InfiniteFuture()) {
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < row_ids.size(); ++i) wanted.push_back(i);
  return OutFetch(store, manifest, layer_index, std::move(row_ids),
                  std::move(wanted), deadline);
}

inline absl::StatusOr<std::string> FetchRows(
    LocalStore& store, const Manifest& manifest, size_t layer_index,
    std::vector<RowId> row_ids, absl::Time deadline = absl::InfiniteFuture()) {
  return StartFetch(store, manifest, layer_index, std::move(row_ids), deadline)
      .Wait();
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_STORE_ROWS_H_
