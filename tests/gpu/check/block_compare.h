#ifndef ENGRAM_TESTS_GPU_CHECK_BLOCK_COMPARE_H_
#define ENGRAM_TESTS_GPU_CHECK_BLOCK_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/block/engram_block.h"
#include "compute/gate/gate.h"
#include "core/model/checkpoint.h"
#include "tests/gpu/check/random_inputs.h"
#include "tests/testing/golden_step.h"
#include "tests/testing/step_run.h"

// One EngramBlock against another: the GPU's against the CPU's, and in a test
// the CPU's against itself. An error says what was off.

namespace engram::gpu_check {

// How often what was compared was not equal to the bit where it need not be.
struct BlockCounts {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  uint64_t kv = 0;
  uint64_t kv_differ = 0;
  uint64_t gates = 0;
  uint64_t gates_differ = 0;  // from those that the CPU computes of the same kv

  std::string ToString() const;
};

struct BlockPair {
  const EngramBlock& block;
  const EngramBlock& reference;
  const Checkpoint& checkpoint;  // of both
  // Whether a token's bits may not depend on those beside it.
  bool batch_invariant = true;
};

// A step of random rows and streams; dead tokens' streams are random bytes.
enum class DeadTokens { kNone, kSome, kAll };
test::StepInput RandomStep(const EngramBlock& block, size_t layer_index,
                           StreamDtype dtype, size_t tokens, DeadTokens dead,
                           Random& random);

// "layer 0, 3 tokens, 2 live, bf16".
std::string StepName(const test::StepInput& input);

// Random steps of these numbers of tokens, every layer, in both dtypes, none,
// some and all dead (of many tokens two of these forms). Every output, written
// in full (two poisons).
absl::Status CompareRandomSteps(const BlockPair& pair,
                                const std::vector<size_t>& token_counts,
                                uint64_t seed, BlockCounts& counts);

// Every set of wanted outputs, output streams that are the input's, rows from
// AllocateRows: the bits of the plain call.
absl::Status CompareCallForms(const BlockPair& pair, size_t tokens,
                              uint64_t seed);

// The same bits in pieces of every size of `pieces` as at once.
absl::Status ComparePieces(const BlockPair& pair, size_t tokens,
                           const std::vector<size_t>& pieces, uint64_t seed);

// `threads` threads with steps of their own, `rounds` each: the bits of the
// same step alone.
absl::Status CompareConcurrent(const BlockPair& pair, size_t tokens,
                               size_t threads, size_t rounds, uint64_t seed);

// Calls that both must refuse, with INVALID_ARGUMENT.
absl::Status CompareRefusals(const BlockPair& pair, uint64_t seed);

// All comparisons of the golden file with what `block` gives.
absl::Status CompareGolden(const test::GoldenStep& golden,
                           const EngramBlock& block, bool batch_invariant,
                           BlockCounts& counts);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_BLOCK_COMPARE_H_
