#ifndef ENGRAM_COMPUTE_BLOCK_GPU_LAYER_STEP_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_LAYER_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/gate/gate.h"
#include "compute/project/gpu_projection.h"
#include "compute/project/projection_mode.h"
#include "compute/project/projection_weights.h"
#include "core/base/thread_pool.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_types.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"
#include "core/model/row_format.h"

namespace engram {

// One layer's Engram step on a GPU, between device buffers and on streams of
// the caller: for an engine whose model runs on the same device.
//
//   side stream: copy or gather the rows -> ProjectRows -> record an event
//   main stream: ... the layers before ... -> wait for the event -> Gate
//
// ProjectRows needs rows only, so it runs as soon as they are there and the
// layer itself pays for Gate alone. Both calls enqueue and return: they do not
// allocate or wait, and may be recorded into a CUDA graph (gpu_graph.h).
//
// Immutable. Thread safety: all methods may be called concurrently; whose
// buffers they use is the caller's to settle. INVALID_ARGUMENT names the size
// or address that does not fit; INTERNAL: the launch failed.
class GpuLayerStep {
 public:
  struct Options {
    // kFast where UsableProjectionMode() gives it.
    ProjectionMode projection = ProjectionMode::kInvariant;
    size_t max_tokens = 4096;  // of one ProjectRows
  };

  struct Weights {
    const GateWeights& gate;
    ProjectionWeights wkv;
  };

  // Uploads the weights, packed with `pool`, to the selected device, where all
  // calls must be made. The errors of GpuProjection::Create.
  static absl::StatusOr<std::unique_ptr<const GpuLayerStep>> Create(
      const EngramConfig& config, const RowFormat& row_format,
      const Weights& weights, const Options& options, ThreadPool* pool);
  // Every layer of a checkpoint, in order.
  static absl::StatusOr<std::vector<std::unique_ptr<const GpuLayerStep>>>
  CreateAll(const Checkpoint& checkpoint, const Options& options,
            ThreadPool* pool);

  // Addresses are the device's, aligned to 16 bytes.
  struct Rows {
    const std::byte* packed = nullptr;  // [tokens, columns] packed rows
    size_t tokens = 0;                  // that have rows
    uint16_t* values = nullptr;         // scratch, ValuesBytes(tokens)
    uint16_t* kv = nullptr;             // out: bf16 [tokens, dim * (hc + 1)]
  };
  absl::Status ProjectRows(const Rows& rows, GpuStreamHandle stream) const;
  size_t ValuesBytes(size_t tokens) const;

  struct Streams {
    StreamDtype dtype = StreamDtype::kBf16;
    const std::byte* in = nullptr;  // [tokens, hc, dim]
    size_t tokens = 0;
    const uint16_t* kv = nullptr;  // of the tokens that have rows
    // int32 [tokens]: which row of kv is the token's, -1 for dead tokens.
    // Null: all live, in order.
    const int32_t* live_index = nullptr;
    // Out, each may be null. Dead tokens: streams as they came, +0.
    std::byte* out = nullptr;   // [tokens, hc, dim], may be `in`
    float* gate = nullptr;      // [tokens, hc]
    uint16_t* value = nullptr;  // bf16 [tokens, dim]
  };
  absl::Status Gate(const Streams& streams, GpuStreamHandle stream) const;

 private:
  GpuLayerStep(const EngramConfig& config, const RowFormat& row_format,
               std::unique_ptr<const GpuProjection> projection,
               DeviceBuffer gate_weight);

  const EngramConfig config_;
  const RowFormat row_format_;
  const std::unique_ptr<const GpuProjection> projection_;
  const DeviceBuffer gate_weight_;  // float32 [hc, dim]
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_LAYER_STEP_H_
