#include "tests/gpu/check/block_compare.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/block/layer_weights.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/testing/step_compare.h"

namespace engram::gpu_check {
namespace {

using test::StepInput;
using test::StepResult;

constexpr uint8_t kPoison = 0xA5;
constexpr uint8_t kOtherPoison = 0x5A;

// Large steps cost the host time: two forms of them must do.
std::vector<std::pair<StreamDtype, DeadTokens>> FormsFor(size_t tokens) {
  constexpr size_t kManyTokens = 20;
  if (tokens > kManyTokens) {
    return {{StreamDtype::kBf16, DeadTokens::kSome},
            {StreamDtype::kF32, DeadTokens::kNone}};
  }
  std::vector<std::pair<StreamDtype, DeadTokens>> forms;
  for (const StreamDtype dtype : {StreamDtype::kBf16, StreamDtype::kF32}) {
    for (const DeadTokens dead :
         {DeadTokens::kNone, DeadTokens::kSome, DeadTokens::kAll}) {
      forms.emplace_back(dtype, dead);
    }
  }
  return forms;
}

// Gate and streams are the CPU's of this result's own kv: the gate nearly to
// the bit (the exponential is the device's own), streams to the bit.
absl::Status CompareGateBits(const GateWeights& weights, const StepInput& input,
                             const StepResult& result, BlockCounts& counts) {
  std::vector<float> gate(result.gate.size());
  ComputeGate(weights, input.dtype, input.streams, result.kv, input.mask,
              absl::MakeSpan(gate));
  for (size_t i = 0; i < gate.size(); ++i) {
    ++counts.gates;
    if (std::memcmp(&gate[i], &result.gate[i], sizeof(float)) != 0) {
      ++counts.gates_differ;
    }
  }
  StepResult sum;
  sum.streams.resize(result.streams.size());
  AddContribution(weights, input.dtype, input.streams, result.kv, result.gate,
                  input.mask, absl::MakeSpan(sum.streams));
  StepResult ours;
  ours.streams = result.streams;
  return Annotate(test::CompareBits(ours, sum), "from its own gate");
}

absl::Status CompareOne(const BlockPair& pair, const StepInput& input,
                        const GateWeights& weights, BlockCounts& counts) {
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result,
                          test::RunStep(pair.block, input, {}, kPoison));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult again,
                          test::RunStep(pair.block, input, {}, kOtherPoison));
  ENGRAM_RETURN_IF_ERROR(Annotate(test::CompareBits(again, result),
                                  "a second run over another poison"));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult wanted,
                          test::RunStep(pair.reference, input));
  const EngramConfig& config = pair.block.config();
  ENGRAM_ASSIGN_OR_RETURN(
      const uint64_t equal,
      test::CountEqualKv(config.wkv_out(), result.kv, wanted.kv));
  ENGRAM_RETURN_IF_ERROR(
      test::CompareWithOwnKv(weights, test::Inputs::kRandom, input, result));
  ENGRAM_RETURN_IF_ERROR(test::CompareWithWanted(config, test::Inputs::kRandom,
                                                 input, result, wanted));
  ENGRAM_RETURN_IF_ERROR(test::CompareDead(config, input, result));
  ENGRAM_RETURN_IF_ERROR(CompareGateBits(weights, input, result, counts));
  ++counts.steps;
  counts.tokens += input.tokens;
  counts.kv += result.kv.size();
  counts.kv_differ += result.kv.size() - equal;
  return absl::OkStatus();
}

}  // namespace

std::string BlockCounts::ToString() const {
  return absl::StrCat(steps, " steps, ", tokens,
                      " tokens; kv differs from the "
                      "reference in ",
                      kv_differ, " of ", kv,
                      " values, the gate from the CPU's of the same kv in ",
                      gates_differ, " of ", gates);
}

std::string StepName(const StepInput& input) {
  size_t live = 0;
  for (size_t token = 0; token < input.tokens; ++token) {
    live += input.Lives(token) ? 1 : 0;
  }
  return absl::StrCat("layer ", input.layer_index, ", ", input.tokens,
                      " tokens, ", live, " live, ",
                      input.dtype == StreamDtype::kBf16 ? "bf16" : "float32");
}

StepInput RandomStep(const EngramBlock& block, size_t layer_index,
                     StreamDtype dtype, size_t tokens, DeadTokens dead,
                     Random& random) {
  const EngramConfig& config = block.config();
  StepInput input;
  input.layer_index = layer_index;
  input.dtype = dtype;
  input.tokens = tokens;
  if (dead == DeadTokens::kSome) input.mask = RandomMask(random, tokens, 4);
  if (dead == DeadTokens::kAll) input.mask.assign(tokens, 0);
  input.streams =
      RandomStreams(random, dtype, tokens * config.hc_mult, config.dim);
  size_t live = 0;
  for (size_t token = 0; token < tokens; ++token) {
    if (input.Lives(token)) {
      ++live;
      continue;
    }
    const size_t bytes = input.stream_bytes();
    FillRandomBytes(absl::MakeSpan(input.streams).subspan(token * bytes, bytes),
                    random.Next());
  }
  input.packed_rows =
      RandomRows(random, block.row_format(), live * config.columns());
  return input;
}

absl::Status CompareRandomSteps(const BlockPair& pair,
                                const std::vector<size_t>& token_counts,
                                uint64_t seed, BlockCounts& counts) {
  Random random(seed);
  const absl::Span<const LayerTensors> layers = pair.checkpoint.layers();
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    ENGRAM_ASSIGN_OR_RETURN(
        const GateWeights weights,
        ReadGateWeights(pair.block.config(), layers[layer]));
    for (const size_t tokens : token_counts) {
      for (const auto& [dtype, dead] : FormsFor(tokens)) {
        const StepInput input =
            RandomStep(pair.block, layer, dtype, tokens, dead, random);
        ENGRAM_RETURN_IF_ERROR(Annotate(
            CompareOne(pair, input, weights, counts), StepName(input)));
      }
    }
  }
  return test::CheckEqualShare(counts.kv - counts.kv_differ, counts.kv);
}

absl::Status CompareGolden(const test::GoldenStep& golden,
                           const EngramBlock& block, bool batch_invariant,
                           BlockCounts& counts) {
  for (const test::GoldenLayer& layer : golden.layers()) {
    ENGRAM_ASSIGN_OR_RETURN(const double share, golden.CheckKv(block, layer));
    const size_t kv = golden.golden().positions() * golden.config().wkv_out();
    counts.kv += kv;
    counts.kv_differ += static_cast<uint64_t>((1 - share) * kv + 0.5);
    ENGRAM_RETURN_IF_ERROR(golden.CheckOwnKv(block, layer));
    ENGRAM_RETURN_IF_ERROR(golden.CheckWanted(block, layer));
    ENGRAM_RETURN_IF_ERROR(golden.CheckDead(block, layer));
    ENGRAM_RETURN_IF_ERROR(golden.CheckContribution(block, layer));
    if (batch_invariant) {
      ENGRAM_RETURN_IF_ERROR(golden.CheckAnyBatch(block, layer));
    }
    ENGRAM_ASSIGN_OR_RETURN(const StepInput input, golden.Input(layer));
    ENGRAM_ASSIGN_OR_RETURN(const StepResult result,
                            test::RunStep(block, input));
    ENGRAM_ASSIGN_OR_RETURN(
        const GateWeights weights,
        ReadGateWeights(golden.config(),
                        golden.checkpoint().layers()[layer.index]));
    ENGRAM_RETURN_IF_ERROR(CompareGateBits(weights, input, result, counts));
    ++counts.steps;
    counts.tokens += golden.golden().positions();
  }
  return absl::OkStatus();
}

}  // namespace engram::gpu_check
