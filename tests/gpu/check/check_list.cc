#include <utility>

#include "absl/time/time.h"
#include "tests/gpu/check/checks.h"

namespace engram::gpu_check {
namespace {

using Function = absl::StatusOr<Outcome> (*)(GpuContext&);

Check Correctness(GpuContext* context, const char* name, const char* what,
                  Function function) {
  return {name, what, absl::Seconds(90), true,
          [context, function] { return function(*context); }};
}

Check Timing(GpuContext* context, const char* name, const char* what,
             Function function) {
  return {name, what, absl::Seconds(60), false,
          [context, function] { return function(*context); }};
}

}  // namespace

std::vector<Check> AllChecks(GpuContext* context) {
  const auto correct = [context](const char* name, const char* what,
                                 Function function) {
    return Correctness(context, name, what, function);
  };
  const auto timing = [context](const char* name, const char* what,
                                Function function) {
    return Timing(context, name, what, function);
  };
  std::vector<Check> checks = {
      correct("gather", "from device and pinned memory, byte for byte",
              CheckGather),
      correct("hash", "against the goldens and the CPU, exactly", CheckHash),
      correct("decode", "every code with every scale, many formats",
              CheckDecode),
      correct("projection",
              "against double precision and the CPU; bits for any batch",
              CheckProjection),
      correct("gate", "against the CPU, to the bit", CheckGate),
      correct("golden", "the GPU's block against the oracle", CheckGoldens),
      correct("block", "the GPU's block against the CPU's, small models",
              CheckBlockSmall),
      correct("block-v41", "the same at V4.1's shapes", CheckBlockV41),
      timing("time-gather", "random rows of tables of 8 and 90 GB",
             TimeGatherFromDevice),
      timing("time-gather-pinned", "random rows of 4 GB of pinned memory",
             TimeGatherFromPinned),
      timing("time-hash", "token ids to row ids", TimeHash),
      timing("time-decode", "packed rows to bf16", TimeDecode),
      timing("time-projection", "1 to 4,096 tokens, both modes",
             TimeProjection),
      timing("time-gate", "gate and add, gate and value", TimeGate),
      timing("time-step", "a decode step of 64 tokens as one graph",
             TimeDecodeStep),
      timing("time-forward", "the block from host to host", TimeForward),
  };
  for (Check& check : checks) {
    if (check.name == "block-v41") check.in_quick = false;
  }
  return checks;
}

}  // namespace engram::gpu_check
