#ifndef ENGRAM_COMPUTE_BLOCK_GPU_SLOT_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_SLOT_H_

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compute/block/gpu_graph.h"
#include "compute/block/gpu_slot_sizes.h"
#include "compute/gate/gate.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_stream.h"

namespace engram {

// Which graph computes a tile. Few values exist, so graphs are kept for good.
struct TileKey {
  size_t layer_index = 0;
  size_t tokens = 0;  // as computed, with padding
  StreamDtype dtype = StreamDtype::kBf16;
  // Wanted outputs.
  bool streams = false;
  bool gate = false;
  bool value = false;

  auto Tie() const {
    return std::tie(layer_index, tokens, dtype, streams, gate, value);
  }
  friend bool operator<(const TileKey& a, const TileKey& b) {
    return a.Tie() < b.Tie();
  }
};

// What one tile of tokens needs while it is computed, made once: buffers here
// and on the device, two streams, and the graphs over these buffers.
//
// Thread safety: none; a SlotPool gives it to one caller at a time.
struct GpuSlot {
  // On the selected device. RESOURCE_EXHAUSTED names the size.
  static absl::StatusOr<std::unique_ptr<GpuSlot>> Create(
      const GpuSlotSizes& sizes);

  // Waits until the main stream's work is done, at the latest until
  // `deadline`. An error, except DEADLINE_EXCEEDED, may be of any work of the
  // device.
  absl::Status Await(absl::Time deadline);
  // The same of both streams: after an error the main one may not be one that
  // waits for the other.
  absl::Status AwaitAll(absl::Time deadline);

  GpuSlotSizes sizes;
  // Pinned.
  PinnedBuffer host_rows;
  PinnedBuffer host_streams;  // in, later out
  PinnedBuffer host_gate;
  PinnedBuffer host_value;
  // On the device. Zero at first: padding computes on what is there.
  DeviceBuffer rows;
  DeviceBuffer values;
  DeviceBuffer kv;
  DeviceBuffer streams;  // updated in place
  DeviceBuffer gate;
  DeviceBuffer value;

  std::unique_ptr<GpuStream> main;
  std::unique_ptr<GpuStream> side;  // rows, and what needs nothing else
  std::unique_ptr<GpuEvent> rows_ready;
  std::unique_ptr<GpuEvent> done;
  std::map<TileKey, std::unique_ptr<const GpuGraph>> graphs;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_SLOT_H_
