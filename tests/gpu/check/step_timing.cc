// A decode step of V4.1's layers through GpuLayerStep, one graph, with rows in
// pinned memory.

#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/block/gpu_graph.h"
#include "compute/block/gpu_layer_step.h"
#include "compute/block/layer_weights.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/block_compare.h"
#include "tests/gpu/check/block_model.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/testing/step_compare.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kSets = 4;

// One layer's inputs and buffers.
struct LayerBuffers {
  test::StepInput input;
  PinnedBuffer host_rows;
  DeviceBuffer rows;
  DeviceBuffer values;
  DeviceBuffer kv;
  DeviceBuffer streams;
  DeviceBuffer out;
};

absl::StatusOr<LayerBuffers> MakeBuffers(const BlockModel& model,
                                         const GpuLayerStep& layer,
                                         test::StepInput input) {
  const EngramConfig& config = model.checkpoint().config();
  LayerBuffers made;
  const std::vector<std::byte>& rows = input.packed_rows;
  ENGRAM_ASSIGN_OR_RETURN(made.host_rows, PinnedBuffer::Allocate(rows.size()));
  std::memcpy(made.host_rows.data(), rows.data(), rows.size());
  ENGRAM_ASSIGN_OR_RETURN(made.rows, AllocatePoisoned(rows.size(), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(
      made.values, AllocatePoisoned(layer.ValuesBytes(input.tokens), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(
      made.kv, AllocatePoisoned(
                   input.tokens * config.wkv_out() * sizeof(uint16_t), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(made.streams, Upload(input.streams));
  ENGRAM_ASSIGN_OR_RETURN(made.out,
                          AllocatePoisoned(input.streams.size(), 0xA5));
  made.input = std::move(input);
  return made;
}

absl::Status Enqueue(const GpuLayerStep& layer, const LayerBuffers& buffers,
                     GpuStreamHandle stream) {
  ENGRAM_RETURN_IF_ERROR(CopyToDevice(buffers.rows.data(),
                                      buffers.host_rows.data(),
                                      buffers.host_rows.size_bytes(), stream));
  ENGRAM_RETURN_IF_ERROR(
      layer.ProjectRows({.packed = buffers.rows.data(),
                         .tokens = buffers.input.tokens,
                         .values = buffers.values.as<uint16_t>(),
                         .kv = buffers.kv.as<uint16_t>()},
                        stream));
  return layer.Gate({.in = buffers.streams.data(),
                     .tokens = buffers.input.tokens,
                     .kv = buffers.kv.as<uint16_t>(),
                     .out = buffers.out.data()},
                    stream);
}

// kv near the CPU block's, streams as they follow from it.
absl::Status Verify(const BlockModel& model, const LayerBuffers& buffers) {
  const test::StepInput& input = buffers.input;
  const EngramConfig& config = model.checkpoint().config();
  ENGRAM_ASSIGN_OR_RETURN(const test::StepResult wanted,
                          test::RunStep(model.cpu_block(), input));
  test::StepResult got;
  ENGRAM_ASSIGN_OR_RETURN(
      got.kv, Download<uint16_t>(buffers.kv, input.tokens * config.wkv_out()));
  ENGRAM_RETURN_IF_ERROR(
      test::CountEqualKv(config.wkv_out(), got.kv, wanted.kv).status());
  ENGRAM_ASSIGN_OR_RETURN(
      got.streams, Download<std::byte>(buffers.out, input.streams.size()));
  ENGRAM_ASSIGN_OR_RETURN(
      const GateWeights weights,
      ReadGateWeights(config, model.checkpoint().layers()[input.layer_index]));
  // The gate itself was not asked for.
  got.gate.resize(input.tokens * config.hc_mult);
  ComputeGate(weights, input.dtype, input.streams, got.kv, {},
              absl::MakeSpan(got.gate));
  return test::CompareWithOwnKv(weights, test::Inputs::kRandom, input, got);
}

// What a layer's bytes take at the rates of this machine: rows over the bus;
// rows, values, weights, kv and streams through the device's memory.
double FloorUs(const Checkpoint& checkpoint, size_t tokens, double copy_rate,
               double host_rate) {
  const EngramConfig& config = checkpoint.config();
  const auto count = static_cast<double>(tokens);
  const double rows =
      count * config.columns() * checkpoint.row_format().row_bytes();
  const double values = count * config.wkv_in() * 2;
  const double weights = 1.0 * config.wkv_in() * config.wkv_out();
  const double kv = count * config.wkv_out() * 2;
  const double streams = count * config.hc_mult * config.dim * 2;
  const double decode = rows + values;
  const double project = weights + values + kv;
  const double gate = kv + 2 * streams;
  return 1e6 * (rows / host_rate + (decode + project + gate) / copy_rate);
}

}  // namespace

absl::StatusOr<Outcome> TimeDecodeStep(GpuContext& context) {
  const size_t tokens = context.Sized<size_t>(64, 5);
  ENGRAM_ASSIGN_OR_RETURN(const BlockModel* model, context.V41Model());
  ENGRAM_ASSIGN_OR_RETURN(const double copy_rate, context.CopyRate());
  ENGRAM_ASSIGN_OR_RETURN(const double host_rate, context.HostToDeviceRate());
  GpuLayerStep::Options options;
  options.max_tokens = tokens;
  ENGRAM_ASSIGN_OR_RETURN(
      const auto layers,
      GpuLayerStep::CreateAll(model->checkpoint(), options, &context.pool()));
  Random random(context.seed());
  std::vector<std::vector<LayerBuffers>> sets(kSets);
  std::vector<std::unique_ptr<const GpuGraph>> graphs;
  for (std::vector<LayerBuffers>& set : sets) {
    for (size_t i = 0; i < layers.size(); ++i) {
      ENGRAM_ASSIGN_OR_RETURN(
          set.emplace_back(),
          MakeBuffers(*model, *layers[i],
                      RandomStep(model->cpu_block(), i, StreamDtype::kBf16,
                                 tokens, DeadTokens::kNone, random)));
    }
    const auto enqueue = [&](GpuStreamHandle stream) -> absl::Status {
      for (size_t i = 0; i < layers.size(); ++i) {
        ENGRAM_RETURN_IF_ERROR(Enqueue(*layers[i], set[i], stream));
      }
      return absl::OkStatus();
    };
    // Once outside of a graph: CUDA loads kernels when they first run.
    ENGRAM_RETURN_IF_ERROR(enqueue(context.stream().handle()));
    ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
    ENGRAM_ASSIGN_OR_RETURN(graphs.emplace_back(),
                            GpuGraph::Capture(context.stream(), enqueue));
  }
  TimingPlan plan = context.Plan(kSets);
  plan.capture = false;
  ENGRAM_ASSIGN_OR_RETURN(
      const Timed timed,
      TimeLaunches(context.stream(), plan, [&](size_t set, GpuStreamHandle) {
        return graphs[set]->Launch(context.stream());
      }));
  for (const LayerBuffers& buffers : sets[0]) {
    ENGRAM_RETURN_IF_ERROR(Verify(*model, buffers));
  }
  const double floor_us =
      FloorUs(model->checkpoint(), tokens, copy_rate, host_rate);
  context.report().AddFloor(
      FigureOf(absl::StrCat("decode step, ", tokens, " tokens, ", layers.size(),
                            " layers"),
               timed, 0, "", "sum of floors"),
      floor_us * static_cast<double>(layers.size()), 1.3);
  return Passed(
      "one graph a step: rows from pinned memory, decode, project, "
      "gate + add; kv and streams compared");
}

}  // namespace engram::gpu_check
