#ifndef ENGRAM_ENGRAM_CLIENT_CTL_APPLY_TENSORS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_APPLY_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/safetensors.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/chunks.h"
#include "engram_client/ctl/token_batch.h"

namespace engram::ctl {

// What `engramctl apply` reads: tokens, and `layers.N.streams_in`, all BF16 or
// all F32, [B, T, hc, dim], of some layers of the model.
struct ApplyInput {
  struct Layer {
    LayerId layer;
    TensorView streams;
  };
  TokenBatch tokens;
  StepDtype dtype = StepDtype::kBf16;
  std::vector<Layer> layers;  // in the order of the model
};

// INVALID_ARGUMENT names the tensor: streams of no layer, of one that the
// model does not have, of another shape, of two dtypes.
absl::StatusOr<ApplyInput> ReadApplyInput(const SafetensorsFile& file,
                                          const ModelInfo& model);

// Bytes of one position's streams.
size_t StreamBytes(const ModelInfo& model, StepDtype dtype);

// Results of one layer for a number of positions; what was not asked for is
// empty.
struct LayerBuffers {
  std::vector<std::byte> streams;
  std::vector<float> gate;
  std::vector<uint16_t> value;
};
LayerBuffers MakeBuffers(const ModelInfo& model, StepDtype dtype,
                         StepReturn what, uint64_t positions);

// Streams of `chunk` of every sequence, one sequence after another: what a
// step wants. DATA_LOSS: the file was truncated meanwhile.
absl::StatusOr<std::vector<std::byte>> ChunkOf(const TensorView& streams,
                                               const Chunk& chunk);

// Puts a step's results at the chunk's place in those of whole sequences.
void PlaceChunk(const LayerBuffers& step, const TokenBatch& batch,
                const Chunk& chunk, LayerBuffers& whole);

// Writes layers.N.streams_out, or layers.N.gate and layers.N.value, of
// results[i] for input.layers[i].
absl::Status WriteResults(const std::string& path, const ModelInfo& model,
                          const ApplyInput& input, StepReturn what,
                          absl::Span<const LayerBuffers> results);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_APPLY_TENSORS_H_
