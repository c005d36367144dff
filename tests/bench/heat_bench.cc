// What counting rows (engramctl heat) costs gathers from memory, while it is
// off and while it is on. One thread; rows by Zipf's law.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/model/layout.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "table_server/gather/gatherer.h"
#include "table_server/heat/heat_recorder.h"
#include "table_server/tier/host_tier.h"
#include "tests/testing/zipf_rows.h"

namespace engram {
namespace {

constexpr uint64_t kPartitionRows = 1 << 12;
constexpr uint32_t kVocabSize = 87'000;  // 2.1 million rows, 550 MB
constexpr size_t kDrawnRows = 1 << 20;

enum class Counting {
  kNone,    // no recorder at all
  kOff,     // nobody records
  kSample,  // of the size that is the default
  kAll,     // every row has its counter
};

template <typename T>
T Must(absl::StatusOr<T> value) {
  ENGRAM_CHECK(value.ok());
  return *std::move(value);
}

Manifest MakeManifest() {
  EngramConfig config = Must(PresetConfig("v41"));
  config.engram_vocab_size = kVocabSize;
  config.num_embeddings.clear();
  const EngramLayout layout = Must(EngramLayout::Create(config));
  std::vector<ManifestLayer> layers;
  for (const LayerLayout& layer : layout.layers()) {
    config.num_embeddings.push_back(layer.row_count);
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  RowFormat format;
  format.width = config.head_dim;
  return Must(Manifest::Create(config, format, kPartitionRows,
                               std::move(layers), "synthetic:1"));
}

// One layer in memory, and gathers of its rows.
class HeatTable {
 public:
  HeatTable() : manifest_(MakeManifest()), partitions_(manifest_) {
    tier_ = Must(HostTier::Create(manifest_));
    for (uint32_t i = 0; i < manifest_.partition_count(0); ++i) {
      const auto bytes = Must(tier_->Allocate(0, PartitionId{i}));
      std::memset(bytes.data(), 1, bytes.size());
      partitions_.Add(0, PartitionId{i});
    }
    const auto rows = static_cast<uint32_t>(manifest_.layers()[0].row_count);
    const ZipfRows zipf(1.0, rows);
    std::mt19937_64 random(1);
    for (size_t i = 0; i < kDrawnRows; ++i) {
      // Hot rows lie far apart.
      ids_.push_back(
          static_cast<RowId>(zipf.Draw(random) * uint64_t{1'000'003} % rows));
    }
  }
  const Manifest& manifest() const { return manifest_; }
  const PartitionSet& partitions() const { return partitions_; }
  const HostTier& tier() const { return *tier_; }
  // Those of a gather; another place for each.
  LayerRowIds Rows(size_t gather, size_t count) const {
    const size_t first = gather * count % (ids_.size() - count);
    return {manifest_.layers()[0].layer_id,
            absl::MakeConstSpan(ids_).subspan(first, count)};
  }

 private:
  const Manifest manifest_;
  PartitionSet partitions_;
  std::unique_ptr<HostTier> tier_;
  std::vector<RowId> ids_;
};

void BM_GatherWhileCounting(benchmark::State& state) {
  static const HeatTable& table = *new HeatTable;
  const auto rows = static_cast<size_t>(state.range(0));
  const auto counting = static_cast<Counting>(state.range(1));
  HeatRecorder recorder;
  const auto recording = std::make_shared<HeatRecording>(
      table.manifest(),
      counting == Counting::kAll ? size_t{8} << 20 : size_t{1} << 16);
  if (counting >= Counting::kSample) {
    ENGRAM_CHECK(recorder.Start(recording));
    // What a recording of some time has seen already.
    for (size_t i = 0; i < kDrawnRows / rows; ++i) {
      recorder.Record(0, table.Rows(i, rows).row_ids);
    }
  }
  const Gatherer gatherer(
      table.manifest(), table.partitions(), table.tier(),
      {.server_name = "s",
       .heat = counting == Counting::kNone ? nullptr : &recorder});
  const std::atomic<bool> cancelled{false};
  const CallGuard guard(absl::InfiniteFuture(), cancelled, Clock::Real());
  std::vector<std::byte> out(rows * table.tier().row_bytes());
  std::vector<RowFetch> missed;
  size_t gather = 0;
  for (auto _ : state) {
    const LayerRowIds wanted = table.Rows(gather++, rows);
    const auto checked = gatherer.Check("", {&wanted, 1});
    ENGRAM_CHECK(
        checked.ok() &&
        gatherer.Copy(*checked, 0, absl::MakeSpan(out), guard, missed).ok());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_GatherWhileCounting)
    ->ArgNames({"rows", "counting"})
    ->ArgsProduct({{24, 500}, {0, 1, 2, 3}});

}  // namespace
}  // namespace engram
