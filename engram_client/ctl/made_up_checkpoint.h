#ifndef ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_CHECKPOINT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/safetensors.h"

namespace engram::ctl {

// A checkpoint made up from a seed: random codes without NaN, scales near
// those of a trained model, and in every layer six rows that catch wrong
// arithmetic. The same model and seed always make the same bytes.
struct MadeUpModel {
  EngramConfig config;  // num_embeddings filled in
  EngramLayout layout;
  uint64_t seed = 0;
  // Every block of every row has amax < 1e-4, so that the projection's
  // re-quantisation rounds.
  bool tiny_scale = false;
};

// `preset` with another table size where `engram_vocab_size` is not 0.
// INVALID_ARGUMENT: no such preset, or tables above the limits.
absl::StatusOr<MadeUpModel> MakeUpModel(const std::string& preset,
                                        uint64_t engram_vocab_size,
                                        uint64_t seed);

// A tensor whose bytes are computed.
struct MadeUpTensor {
  TensorSpec spec;
  uint64_t size_bytes = 0;
  // Writes bytes [offset, offset + out.size()) of the tensor. Thread safety:
  // may be called concurrently. REQUIRES: offset is a multiple of
  // kMadeUpBlockBytes.
  std::function<void(uint64_t offset, absl::Span<uint8_t> out)> fill;
};

// The tensors of one layer's file, in file order, named as in the real
// checkpoint.
std::vector<MadeUpTensor> MadeUpLayerTensors(const MadeUpModel& model,
                                             size_t layer_index);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_MADE_UP_CHECKPOINT_H_
