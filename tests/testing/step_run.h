#ifndef ENGRAM_TESTS_TESTING_STEP_RUN_H_
#define ENGRAM_TESTS_TESTING_STEP_RUN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compute/block/engram_block.h"
#include "compute/gate/gate.h"
#include "core/model/config.h"

namespace engram::test {

// What one layer's step is given for a run of tokens.
struct StepInput {
  size_t layer_index = 0;
  StreamDtype dtype = StreamDtype::kBf16;
  size_t tokens = 0;
  std::vector<std::byte> packed_rows;  // of live tokens
  std::vector<std::byte> streams;
  std::vector<uint8_t> mask;  // empty: all live

  bool Lives(size_t token) const { return mask.empty() || mask[token] != 0; }
  size_t stream_bytes() const {  // of one token
    return tokens == 0 ? 0 : streams.size() / tokens;
  }
};

// What it gives. Outputs that were not wanted are empty.
struct StepResult {
  std::vector<std::byte> streams;
  std::vector<float> gate;
  std::vector<uint16_t> value;
  std::vector<uint16_t> kv;

  void Append(const StepResult& more);
};

// Bit for bit, unlike a comparison of floats.
bool SameBits(const StepResult& a, const StepResult& b);

struct WantedOutputs {
  bool streams = true;
  bool gate = true;
  bool value = true;
  bool kv = true;
};

// The buffers of `wanted`, every byte `poison`: what is not written shows in
// a comparison with a run over another poison.
StepResult PoisonedResult(const EngramConfig& config, const StepInput& input,
                          const WantedOutputs& wanted, uint8_t poison);

absl::StatusOr<StepResult> RunStep(const EngramBlock& block,
                                   const StepInput& input,
                                   const WantedOutputs& wanted = {},
                                   uint8_t poison = 0xA5);

// Value i of streams, as a double.
double StreamAt(const std::vector<std::byte>& streams, StreamDtype dtype,
                size_t i);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_STEP_RUN_H_
