#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEP_INPUTS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEP_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/apply_tensors.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

// What a step is made of: one sequence, and bf16 streams of each layer.
struct StepInput {
  uint64_t number = 0;
  StepSequence sequence;
  std::vector<std::vector<std::byte>> streams;  // by layer

  uint64_t tokens() const { return sequence.token_ids.size(); }
};

// Live tokens of the vocabulary and streams of -4 .. 4, all drawn from `seed`.
// Input 0 stands at the start of its sequence, any other somewhere behind it
// with the whole lookback.
StepInput DrawStepInput(const ModelInfo& model, size_t layers, uint64_t number,
                        uint64_t tokens, uint64_t seed);

// Results of a step, by layer, with room for so many tokens.
struct StepResults {
  uint64_t capacity = 0;
  std::vector<LayerBuffers> layers;

  static StepResults Make(const ModelInfo& model, size_t layers,
                          StepReturn what, uint64_t tokens);
  // Fills those of the first `tokens` with what no step gives.
  void Poison(uint64_t tokens);
  // What the client reads and writes for `input`. REQUIRES: it fits.
  std::vector<StepLayerIo> Io(const ModelInfo& model, StepReturn what,
                              absl::Span<const LayerId> layer_ids,
                              const StepInput& input);
};

// Where the first `input.tokens()` tokens of two results differ, to the bit.
std::optional<LoadMismatch> CompareSteps(const ModelInfo& model,
                                         absl::Span<const LayerId> layer_ids,
                                         const StepInput& input,
                                         const StepResults& wanted,
                                         const StepResults& got);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEP_INPUTS_H_
