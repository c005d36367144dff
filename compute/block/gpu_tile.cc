#include "compute/block/gpu_tile.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compute/block/token_bucket.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// What a thread copies at a time: less is not worth waking one.
constexpr size_t kCopyBytes = size_t{1} << 20;

// body(i) for i in [0, count), which touches some `bytes` each.
void ForEach(ThreadPool* pool, size_t count, size_t bytes,
             absl::FunctionRef<void(size_t)> body) {
  const size_t piece = std::max<size_t>(1, kCopyBytes / bytes);
  const auto run = [&](size_t p) {
    const size_t end = std::min(count, (p + 1) * piece);
    for (size_t i = p * piece; i < end; ++i) body(i);
  };
  const size_t pieces = (count + piece - 1) / piece;
  if (pool != nullptr) return pool->ParallelFor(pieces, run);
  for (size_t p = 0; p < pieces; ++p) run(p);
}

// ---- kernels ----

TileKey KeyOf(const GpuTile& tile, size_t tokens) {
  const BlockOutputs& outputs = tile.step.outputs();
  return {.layer_index = tile.layer_index,
          .tokens = tokens,
          .dtype = tile.step.dtype(),
          .streams = !outputs.streams.empty(),
          .gate = !outputs.gate.empty(),
          .value = !outputs.value.empty()};
}

absl::Status ProjectRows(const GpuLayerStep& layer, size_t tokens,
                         const GpuSlot& slot, GpuStreamHandle stream) {
  return layer.ProjectRows({.packed = slot.rows.data(),
                            .tokens = tokens,
                            .values = slot.values.as<uint16_t>(),
                            .kv = slot.kv.as<uint16_t>()},
                           stream);
}

absl::Status Gate(const GpuLayerStep& layer, const TileKey& key,
                  const GpuSlot& slot, GpuStreamHandle stream) {
  return layer.Gate({.dtype = key.dtype,
                     .in = slot.streams.data(),
                     .tokens = key.tokens,
                     .kv = slot.kv.as<uint16_t>(),
                     .out = key.streams ? slot.streams.data() : nullptr,
                     .gate = key.gate ? slot.gate.as<float>() : nullptr,
                     .value = key.value ? slot.value.as<uint16_t>() : nullptr},
                    stream);
}

absl::StatusOr<const GpuGraph*> FindOrRecordGraph(const GpuLayerStep& layer,
                                                  const TileKey& key,
                                                  GpuSlot& slot) {
  std::unique_ptr<const GpuGraph>& graph = slot.graphs[key];
  if (graph == nullptr) {
    ENGRAM_ASSIGN_OR_RETURN(
        graph, GpuGraph::Capture(*slot.main, [&](GpuStreamHandle stream) {
          const absl::Status projected =
              ProjectRows(layer, key.tokens, slot, stream);
          return projected.ok() ? Gate(layer, key, slot, stream) : projected;
        }));
  }
  return graph.get();
}

// ---- copies ----

absl::Status CopyRowsIn(const GpuTile& tile, const GpuTileHelp& help,
                        GpuSlot& slot) {
  const absl::Span<const std::byte> rows =
      tile.step.Rows(tile.first, tile.count);
  const std::byte* from = rows.data();
  if (!help.pinned_rows.Contains(rows)) {
    const size_t bytes = tile.step.row_bytes();
    ForEach(help.pool, tile.count, bytes, [&](size_t i) {
      std::memcpy(slot.host_rows.data() + i * bytes, rows.data() + i * bytes,
                  bytes);
    });
    from = slot.host_rows.data();
  }
  return CopyToDevice(slot.rows.data(), from, rows.size(), slot.side->handle());
}

absl::Status CopyStreamsIn(const GpuTile& tile, const GpuTileHelp& help,
                           GpuSlot& slot) {
  const size_t bytes = tile.step.stream_bytes();
  ForEach(help.pool, tile.count, bytes, [&](size_t i) {
    const size_t token = tile.step.live()[tile.first + i];
    std::memcpy(slot.host_streams.data() + i * bytes,
                tile.step.Streams(token).data(), bytes);
  });
  return CopyToDevice(slot.streams.data(), slot.host_streams.data(),
                      tile.count * bytes, slot.main->handle());
}

// One of the outputs, on its way from the device to the caller.
template <typename T>
struct Output {
  absl::Span<T> caller;  // of the whole step; empty: not wanted
  const DeviceBuffer& device;
  T* host;
};

template <typename T>
absl::Status CopyOut(const GpuTile& tile, const Output<T>& output,
                     const GpuSlot& slot) {
  const size_t width = output.caller.size() / tile.step.tokens();
  return CopyToHost(output.host, output.device.data(),
                    tile.count * width * sizeof(T), slot.main->handle());
}

template <typename T>
void Deliver(const GpuTile& tile, const Output<T>& output, ThreadPool* pool) {
  if (output.caller.empty()) return;
  const size_t width = output.caller.size() / tile.step.tokens();
  ForEach(pool, tile.count, width * sizeof(T), [&](size_t i) {
    const size_t token = tile.step.live()[tile.first + i];
    std::memcpy(tile.step.Part(output.caller, token).data(),
                output.host + i * width, width * sizeof(T));
  });
}

// Puts the tile's way to the device, and what is computed there, on the slot's
// streams; `graph` may be null.
absl::Status Enqueue(const GpuTile& tile, const GpuTileHelp& help,
                     const TileKey& key, const GpuGraph* graph, GpuSlot& slot) {
  ENGRAM_RETURN_IF_ERROR(CopyRowsIn(tile, help, slot));
  if (graph == nullptr) {
    ENGRAM_RETURN_IF_ERROR(
        ProjectRows(tile.layer, tile.count, slot, slot.side->handle()));
  }
  ENGRAM_RETURN_IF_ERROR(slot.rows_ready->Record(*slot.side));
  ENGRAM_RETURN_IF_ERROR(CopyStreamsIn(tile, help, slot));
  ENGRAM_RETURN_IF_ERROR(slot.main->Wait(*slot.rows_ready));
  return graph != nullptr ? graph->Launch(*slot.main)
                          : Gate(tile.layer, key, slot, slot.main->handle());
}

// Waits for what is on the streams, and hands out the outputs.
absl::Status ReadBack(const GpuTile& tile, const GpuTileHelp& help,
                      absl::Time deadline, GpuSlot& slot) {
  const BlockOutputs& outputs = tile.step.outputs();
  // For tests, so without pinned memory of its own.
  std::vector<uint16_t> host_kv(tile.count *
                                (outputs.kv.size() / tile.step.tokens()));
  const Output<std::byte> streams{outputs.streams, slot.streams,
                                  slot.host_streams.data()};
  const Output<float> gate{outputs.gate, slot.gate, slot.host_gate.as<float>()};
  const Output<uint16_t> value{outputs.value, slot.value,
                               slot.host_value.as<uint16_t>()};
  const Output<uint16_t> kv{outputs.kv, slot.kv, host_kv.data()};
  ENGRAM_RETURN_IF_ERROR(CopyOut(tile, streams, slot));
  ENGRAM_RETURN_IF_ERROR(CopyOut(tile, gate, slot));
  ENGRAM_RETURN_IF_ERROR(CopyOut(tile, value, slot));
  ENGRAM_RETURN_IF_ERROR(CopyOut(tile, kv, slot));
  ENGRAM_RETURN_IF_ERROR(slot.Await(deadline));
  Deliver(tile, streams, help.pool);
  Deliver(tile, gate, help.pool);
  Deliver(tile, value, help.pool);
  Deliver(tile, kv, help.pool);
  return absl::OkStatus();
}

}  // namespace

absl::Status ComputeTile(const GpuTile& tile, const GpuTileHelp& help,
                         absl::Time deadline, GpuSlot& slot) {
  const std::optional<size_t> bucket =
      TokenBucket(tile.count, slot.sizes.tokens);
  const TileKey key = KeyOf(tile, bucket.value_or(tile.count));
  const GpuGraph* graph = nullptr;
  if (bucket.has_value()) {
    ENGRAM_ASSIGN_OR_RETURN(graph, FindOrRecordGraph(tile.layer, key, slot));
  }
  ENGRAM_RETURN_IF_ERROR(Enqueue(tile, help, key, graph, slot));
  return ReadBack(tile, help, deadline, slot);
}

absl::Status WarmUp(const GpuLayerStep& layer, absl::Time deadline,
                    GpuSlot& slot) {
  const size_t most = slot.sizes.tokens;
  for (size_t tokens = 1; tokens <= most;) {
    tokens = TokenBucket(tokens, most).value_or(most);
    for (const StreamDtype dtype : {StreamDtype::kBf16, StreamDtype::kF32}) {
      const TileKey key = {.tokens = tokens,
                           .dtype = dtype,
                           .streams = true,
                           .gate = true,
                           .value = true};
      ENGRAM_RETURN_IF_ERROR(
          ProjectRows(layer, tokens, slot, slot.main->handle()));
      ENGRAM_RETURN_IF_ERROR(Gate(layer, key, slot, slot.main->handle()));
    }
    ++tokens;
  }
  return slot.Await(deadline);
}

}  // namespace engram
