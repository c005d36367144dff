#ifndef ENGRAM_TESTS_GPU_CHECK_GATE_CASES_H_
#define ENGRAM_TESTS_GPU_CHECK_GATE_CASES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compute/gate/gate.h"
#include "tests/gpu/check/random_inputs.h"

// A gate, its inputs, and the comparison of what came out with gate.h.

namespace engram::gpu_check {

struct GateCase {
  uint32_t hc = 0;
  uint32_t dim = 0;
  size_t tokens = 0;
  StreamDtype dtype = StreamDtype::kBf16;
  bool some_dead = false;
  bool shifted = false;   // pointers aligned to one value only
  bool in_place = false;  // out_streams == streams
  uint32_t outputs = 7;   // bits: streams, gate, value

  std::string Name() const;
  size_t stream_bytes() const { return tokens * hc * dim * StreamBytes(dtype); }
};

struct GateInput {
  GateWeights weights;
  std::vector<std::byte> streams;
  std::vector<uint8_t> mask;        // as ComputeGate takes it
  std::vector<uint16_t> kv;         // of all tokens
  std::vector<uint16_t> live_kv;    // of live ones
  std::vector<int32_t> live_index;  // empty: all live
};

struct GateResult {
  std::vector<std::byte> streams;
  std::vector<float> gate;
  std::vector<uint16_t> value;
};

struct GateCounts {
  uint64_t gates = 0;
  uint64_t differ = 0;
};

GateInput MakeGateInput(const GateCase& gate, Random& random);

// All outputs: the gate within 1e-6 of the CPU's (and counted where a bit
// differs), value and streams to the bit from the result's own gate.
absl::Status CompareGate(const GateCase& gate, const GateInput& input,
                         const GateResult& got, GateCounts& counts);

// `some`, with the outputs of `gate` only, over memory of `poison`, has the
// bits of `all`, and nothing else was written.
absl::Status CompareGateSet(const GateCase& gate, const GateInput& input,
                            const GateResult& some, const GateResult& all,
                            uint8_t poison);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_GATE_CASES_H_
