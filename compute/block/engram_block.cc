#include "compute/block/engram_block.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compute/dequant/dequant.h"
#include "compute/gate/gate.h"
#include "compute/hash/ngram_hash.h"
#include "compute/project/projection.h"
#include "core/base/page_buffer.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/number_formats.h"
#include "core/model/safetensors.h"

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

absl::StatusOr<GateWeights> ReadGate(const EngramConfig& config,
                                     const LayerTensors& tensors) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> q,
                          CopyTensor<uint16_t>(tensors.q_weight));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> k,
                          CopyTensor<uint16_t>(tensors.k_weight));
  const size_t wanted = size_t{config.hc_mult} * config.dim;
  if (q.size() != wanted || k.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensors.q_weight.name, " and ", tensors.k_weight.name, " have ",
        q.size(), " and ", k.size(), " values, must have ", wanted));
  }
  GateWeights gate;
  gate.hc_mult = config.hc_mult;
  gate.dim = config.dim;
  gate.norm_eps = static_cast<float>(config.norm_eps);
  gate.weight.resize(wanted);
  for (size_t i = 0; i < wanted; ++i) {
    gate.weight[i] = Bf16ToFloat(q[i]) * Bf16ToFloat(k[i]);
  }
  return gate;
}

// Packs from a copy, because the pool's threads may not touch the mapping: a
// fault outside Guarded would end the process.
absl::StatusOr<std::unique_ptr<const Projection>> ReadProjection(
    const EngramConfig& config, const LayerTensors& tensors, ThreadPool* pool) {
  const TensorView& weight = tensors.wkv_weight;
  ENGRAM_ASSIGN_OR_RETURN(PageBuffer codes,
                          PageBuffer::Allocate(weight.bytes.size()));
  ENGRAM_RETURN_IF_ERROR(weight.file->Guarded([&] {
    std::memcpy(codes.bytes().data(), weight.bytes.data(), weight.bytes.size());
  }));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint8_t> scales,
                          CopyTensor<uint8_t>(tensors.wkv_scale));
  Projection::Weights weights;
  weights.in = config.wkv_in();
  weights.out = config.wkv_out();
  weights.codes = {reinterpret_cast<const uint8_t*>(codes.bytes().data()),
                   codes.bytes().size()};
  weights.scales = scales;
  absl::StatusOr<std::unique_ptr<const Projection>> projection =
      Projection::Create(weights, pool);
  if (!projection.ok()) return Annotate(projection.status(), weight.name);
  return projection;
}

absl::Status CheckSize(absl::string_view what, size_t size, size_t wanted) {
  if (size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", size, " instead of ", wanted));
}

absl::Status CheckOutput(absl::string_view what, size_t size, size_t wanted) {
  return size == 0 ? absl::OkStatus() : CheckSize(what, size, wanted);
}

// One step's spans, checked against each other.
struct Step {
  StreamDtype dtype;
  absl::Span<const std::byte> packed_rows;
  absl::Span<const std::byte> streams;
  const BlockOutputs& outputs;
  size_t stream_bytes;       // of one token
  std::vector<size_t> live;  // tokens that have rows, ascending
  size_t tokens;

  // The part of an output that belongs to one token; empty if not wanted.
  template <typename T>
  absl::Span<T> Of(absl::Span<T> output, size_t token) const {
    const size_t width = output.size() / tokens;
    return output.subspan(token * width, width);
  }
};

template <typename T>
void Zero(absl::Span<T> values) {
  std::fill(values.begin(), values.end(), T{0});
}

void WriteDeadToken(const Step& step, size_t token) {
  const absl::Span<std::byte> streams = step.Of(step.outputs.streams, token);
  if (!streams.empty()) {
    std::memmove(streams.data(),
                 step.streams.data() + token * step.stream_bytes,
                 step.stream_bytes);
  }
  Zero(step.Of(step.outputs.gate, token));
  Zero(step.Of(step.outputs.value, token));
  Zero(step.Of(step.outputs.kv, token));
}

// Gates one live token from its kv and writes what the caller asked for.
void WriteLiveToken(const Step& step, const GateWeights& weights, size_t token,
                    absl::Span<const uint16_t> kv, absl::Span<float> gate) {
  const absl::Span<const std::byte> streams =
      step.streams.subspan(token * step.stream_bytes, step.stream_bytes);
  ComputeGate(weights, step.dtype, streams, kv, {}, gate);
  absl::c_copy(kv.first(step.Of(step.outputs.kv, token).size()),
               step.Of(step.outputs.kv, token).begin());
  const absl::Span<uint16_t> value = step.Of(step.outputs.value, token);
  absl::c_copy(kv.last(value.size()), value.begin());
  if (!step.outputs.gate.empty()) {
    absl::c_copy(gate, step.Of(step.outputs.gate, token).begin());
  }
  if (!step.outputs.streams.empty()) {
    AddContribution(weights, step.dtype, streams, kv, gate, {},
                    step.Of(step.outputs.streams, token));
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

  absl::Status Forward(size_t layer_index, StreamDtype dtype,
                       absl::Span<const std::byte> packed_rows,
                       absl::Span<const std::byte> streams,
                       absl::Span<const uint8_t> mask,
                       const BlockOutputs& outputs) const override {
    if (layer_index >= layers_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer index ", layer_index, " of a model with ", layers_.size()));
    }
    Step step = {dtype, packed_rows, streams, outputs, StreamBytesOf(dtype)};
    ENGRAM_RETURN_IF_ERROR(Check(mask, &step));
    if (step.tokens == 0) return absl::OkStatus();
    Scratch scratch(std::min(step.live.size(), kTileTokens), config_);
    for (size_t done = 0; done < step.live.size(); done += kTileTokens) {
      ForwardTile(layers_[layer_index], step, done,
                  std::min(kTileTokens, step.live.size() - done), &scratch);
    }
    return absl::OkStatus();
  }

 private:
  size_t StreamBytesOf(StreamDtype dtype) const {
    return size_t{config_.hc_mult} * config_.dim * StreamBytes(dtype);
  }

  // Fills in tokens and live, and writes the dead tokens' outputs once all
  // sizes are known to fit.
  absl::Status Check(absl::Span<const uint8_t> mask, Step* step) const {
    const size_t tokens = step->streams.size() / step->stream_bytes;
    step->tokens = tokens;
    ENGRAM_RETURN_IF_ERROR(CheckSize("bytes of streams", step->streams.size(),
                                     tokens * step->stream_bytes));
    if (!mask.empty()) {
      ENGRAM_RETURN_IF_ERROR(CheckSize("mask entries", mask.size(), tokens));
    }
    const BlockOutputs& out = step->outputs;
    ENGRAM_RETURN_IF_ERROR(CheckOutput(
        "bytes of output streams", out.streams.size(), step->streams.size()));
    ENGRAM_RETURN_IF_ERROR(
        CheckOutput("output gates", out.gate.size(), tokens * config_.hc_mult));
    ENGRAM_RETURN_IF_ERROR(
        CheckOutput("output values", out.value.size(), tokens * config_.dim));
    ENGRAM_RETURN_IF_ERROR(
        CheckOutput("output kv", out.kv.size(), tokens * config_.wkv_out()));
    step->live.reserve(tokens);
    for (size_t m = 0; m < tokens; ++m) {
      if (mask.empty() || mask[m] != 0) step->live.push_back(m);
    }
    ENGRAM_RETURN_IF_ERROR(
        CheckSize(absl::StrCat("bytes of packed rows for ", step->live.size(),
                               " live tokens"),
                  step->packed_rows.size(), step->live.size() * RowBytes()));
    for (size_t m = 0; m < mask.size(); ++m) {
      if (mask[m] == 0) WriteDeadToken(*step, m);
    }
    return absl::OkStatus();
  }

  // Packed rows of one token.
  size_t RowBytes() const {
    return config_.columns() * row_format_.row_bytes();
  }

  // Live tokens [first, first + count) of the step.
  void ForwardTile(const LayerWeights& layer, const Step& step, size_t first,
                   size_t count, Scratch* scratch) const {
    const size_t in = config_.wkv_in();
    const size_t out = config_.wkv_out();
    pool_->ParallelFor(count, [&](size_t i) {
      DecodeRowsForProjection(
          row_format_,
          step.packed_rows.subspan((first + i) * RowBytes(), RowBytes()),
          absl::MakeSpan(scratch->rows.get() + i * in, in));
    });
    layer.projection->Project(
        absl::MakeConstSpan(scratch->rows.get(), count * in),
        absl::MakeSpan(scratch->kv.get(), count * out), pool_);
    pool_->ParallelFor(count, [&](size_t i) {
      WriteLiveToken(step, layer.gate, step.live[first + i],
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

}  // namespace

absl::StatusOr<std::unique_ptr<const EngramBlock>> EngramBlock::Create(
    const Checkpoint& checkpoint, const TokenMap& token_map, ThreadPool* pool) {
  const EngramConfig& config = checkpoint.config();
  ENGRAM_ASSIGN_OR_RETURN(
      NgramHasher hasher,
      NgramHasher::Create(config, checkpoint.layout(), token_map));
  std::vector<LayerWeights> layers;
  for (const LayerTensors& tensors : checkpoint.layers()) {
    LayerWeights layer;
    ENGRAM_ASSIGN_OR_RETURN(layer.gate, ReadGate(config, tensors));
    ENGRAM_ASSIGN_OR_RETURN(layer.projection,
                            ReadProjection(config, tensors, pool));
    layers.push_back(std::move(layer));
  }
  return std::make_unique<const CpuEngramBlock>(checkpoint, std::move(hasher),
                                                std::move(layers), pool);
}

}  // namespace engram
