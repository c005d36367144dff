#ifndef ENGRAM_COMPUTE_BLOCK_LAYER_WEIGHTS_H_
#define ENGRAM_COMPUTE_BLOCK_LAYER_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compute/gate/gate.h"
#include "compute/project/projection.h"
#include "core/base/page_buffer.h"
#include "core/model/checkpoint.h"
#include "core/model/config.h"

namespace engram {

// A layer's weights as every block takes them, copied out of the checkpoint's
// mapping: other threads may not touch that (a fault outside
// MappedFile::Guarded would end the process).
// INVALID_ARGUMENT names the tensor; DATA_LOSS: its file was truncated.

absl::StatusOr<GateWeights> ReadGateWeights(const EngramConfig& config,
                                            const LayerTensors& tensors);

struct WkvWeights {
  PageBuffer codes;             // e4m3 [out, in]
  std::vector<uint8_t> scales;  // e8m0 [ceil(out / 32), in / 32]

  // Points into this.
  Projection::Weights View(const EngramConfig& config) const;
};

absl::StatusOr<WkvWeights> ReadWkvWeights(const LayerTensors& tensors);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_LAYER_WEIGHTS_H_
