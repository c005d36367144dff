#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/block/layer_weights.h"
#include "compute/block/step_spans.h"
#include "compute/dequant/dequant.h"
#include "compute/gate/gate.h"
#include "compute/hash/ngram_hash.h"
#include "compute/project/projection.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"

namespace engram {
namespace {

// Tokens that are decoded and projected at a time. It bounds the scratch
// memory: 6 MiB of rows and 13 MiB of kv in V4.1.
constexpr size_t kTileTokens = 256;

struct LayerWeights {
  GateWeights gate;
  std::unique_ptr<const Projection> projection;
};

// Memory of one Forward call, for up to kTileTokens tokens.
struct Scratch {
  Scratch(size_t tokens, const EngramConfig& config)
      : rows(std::make_unique_for_overwrite<float[]>(tokens * config.wkv_in())),
        kv(std::make_unique_for_overwrite<uint16_t[]>(tokens *
                                                      config.wkv_out())),
        gate(std::make_unique_for_overwrite<float[]>(tokens * config.hc_mult)) {
  }

  std::unique_ptr<float[]> rows;   // [tokens, wkv_in]
  std::unique_ptr<uint16_t[]> kv;  // [tokens, wkv_out]
  std::unique_ptr<float[]> gate;   // [tokens, hc]
};

// Gates one live token from its kv and writes what the caller asked for.
void WriteLiveToken(const StepSpans& step, const GateWeights& weights,
                    size_t token, absl::Span<const uint16_t> kv,
                    absl::Span<float> gate) {
  const BlockOutputs& outputs = step.outputs();
  const absl::Span<const std::byte> streams = step.Streams(token);
  ComputeGate(weights, step.dtype(), streams, kv, {}, gate);
  absl::c_copy(kv.first(step.Part(outputs.kv, token).size()),
               step.Part(outputs.kv, token).begin());
  const absl::Span<uint16_t> value = step.Part(outputs.value, token);
  absl::c_copy(kv.last(value.size()), value.begin());
  if (!outputs.gate.empty()) {
    absl::c_copy(gate, step.Part(outputs.gate, token).begin());
  }
  if (!outputs.streams.empty()) {
    AddContribution(weights, step.dtype(), streams, kv, gate, {},
                    step.Part(outputs.streams, token));
  }
}

class CpuEngramBlock final : public EngramBlock {
 public:
  CpuEngramBlock(const Checkpoint& checkpoint, NgramHasher hasher,
                 std::vector<LayerWeights> layers, ThreadPool* pool)
      : config_(checkpoint.config()),
        layout_(checkpoint.layout()),
        row_format_(checkpoint.row_format()),
        hasher_(std::move(hasher)),
        layers_(std::move(layers)),
        pool_(pool) {}

  const EngramConfig& config() const override { return config_; }
  const EngramLayout& layout() const override { return layout_; }
  const RowFormat& row_format() const override { return row_format_; }
  const NgramHasher& hasher() const override { return hasher_; }
  ProjectionMode projection_mode() const override {
    return ProjectionMode::kInvariant;
  }
  size_t tile_tokens() const override { return kTileTokens; }

  absl::StatusOr<RowsBuffer> AllocateRows(size_t size_bytes) const override {
    return RowsBuffer::Plain(size_bytes);
  }
  BlockUse use() const override { return {}; }
  absl::Status health() const override { return absl::OkStatus(); }

  absl::Status Forward(size_t layer_index, StreamDtype dtype,
                       absl::Span<const std::byte> packed_rows,
                       absl::Span<const std::byte> streams,
                       absl::Span<const uint8_t> mask,
                       const BlockOutputs& outputs) const override {
    ENGRAM_RETURN_IF_ERROR(CheckLayerIndex(layer_index, layers_.size()));
    ENGRAM_ASSIGN_OR_RETURN(
        const StepSpans step,
        StepSpans::Create(config_, row_format_,
                          {dtype, packed_rows, streams, mask}, outputs));
    step.WriteDeadTokens();
    const size_t live = step.live().size();
    if (live == 0) return absl::OkStatus();
    Scratch scratch(std::min(live, kTileTokens), config_);
    for (size_t done = 0; done < live; done += kTileTokens) {
      ForwardTile(layers_[layer_index], step, done,
                  std::min(kTileTokens, live - done), &scratch);
    }
    return absl::OkStatus();
  }

 private:
  // Live tokens [first, first + count) of the step.
  void ForwardTile(const LayerWeights& layer, const StepSpans& step,
                   size_t first, size_t count, Scratch* scratch) const {
    const size_t in = config_.wkv_in();
    const size_t out = config_.wkv_out();
    pool_->ParallelFor(count, [&](size_t i) {
      DecodeRowsForProjection(row_format_, step.Rows(first + i, 1),
                              absl::MakeSpan(scratch->rows.get() + i * in, in));
    });
    layer.projection->Project(
        absl::MakeConstSpan(scratch->rows.get(), count * in),
        absl::MakeSpan(scratch->kv.get(), count * out), pool_);
    pool_->ParallelFor(count, [&](size_t i) {
      WriteLiveToken(step, layer.gate, step.live()[first + i],
                     absl::MakeConstSpan(scratch->kv.get() + i * out, out),
                     absl::MakeSpan(scratch->gate.get() + i * config_.hc_mult,
                                    config_.hc_mult));
    });
  }

  const EngramConfig config_;
  const EngramLayout layout_;
  const RowFormat row_format_;
  const NgramHasher hasher_;
  const std::vector<LayerWeights> layers_;
  ThreadPool* const pool_;
};

absl::StatusOr<LayerWeights> ReadLayer(const EngramConfig& config,
                                       const LayerTensors& tensors,
                                       ThreadPool* pool) {
  LayerWeights layer;
  ENGRAM_ASSIGN_OR_RETURN(layer.gate, ReadGateWeights(config, tensors));
  ENGRAM_ASSIGN_OR_RETURN(const WkvWeights wkv, ReadWkvWeights(tensors));
  auto projection = Projection::Create(wkv.View(config), pool);
  ENGRAM_RETURN_IF_ERROR(
      Annotate(projection.status(), tensors.wkv_weight.name));
  layer.projection = *std::move(projection);
  return layer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const EngramBlock>> EngramBlock::Create(
    const Checkpoint& checkpoint, const TokenMap& token_map, ThreadPool* pool) {
  const EngramConfig& config = checkpoint.config();
  ENGRAM_ASSIGN_OR_RETURN(
      NgramHasher hasher,
      NgramHasher::Create(config, checkpoint.layout(), token_map));
  std::vector<LayerWeights> layers;
  for (const LayerTensors& tensors : checkpoint.layers()) {
    ENGRAM_ASSIGN_OR_RETURN(LayerWeights layer,
                            ReadLayer(config, tensors, pool));
    layers.push_back(std::move(layer));
  }
  return std::make_unique<const CpuEngramBlock>(checkpoint, std::move(hasher),
                                                std::move(layers), pool);
}

}  // namespace engram
