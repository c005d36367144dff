#include "tests/testing/golden_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compute/block/layer_weights.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/testing/step_compare.h"

namespace engram::test {

absl::StatusOr<std::unique_ptr<const GoldenStep>> GoldenStep::Open(
    const std::string& golden_path, const std::string& checkpoint_dir) {
  ENGRAM_ASSIGN_OR_RETURN(GoldenFile golden, GoldenFile::Open(golden_path));
  ENGRAM_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                          Checkpoint::Open(checkpoint_dir));
  ENGRAM_ASSIGN_OR_RETURN(
      TokenMap token_map,
      TokenMap::Load(absl::StrCat(checkpoint_dir, "/", kTokenMapFileName),
                     checkpoint.config()));
  auto step = absl::WrapUnique(new GoldenStep(
      std::move(golden), std::move(checkpoint), std::move(token_map)));
  for (const LayerLayout& layer : step->checkpoint_.layout().layers()) {
    step->AddLayer(layer.layer_id);
  }
  return step;
}

void GoldenStep::AddLayer(LayerId id) {
  const size_t index = layers_.size();
  const bool bf16 = golden_.LayerDtype(id, "streams_in") == "BF16";
  layers_.push_back(
      {index, id, bf16 ? StreamDtype::kBf16 : StreamDtype::kF32,
       golden_.RowIds(index, checkpoint_.layout().layers().size()),
       StreamBytesOf(id, "streams_in")});
}

std::vector<std::byte> GoldenStep::StreamBytesOf(
    LayerId id, const std::string& name) const {
  std::vector<std::byte> bytes;
  const auto append = [&](const auto& values) {
    bytes.resize(values.size() * sizeof(values[0]));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  };
  if (golden_.LayerDtype(id, name) == "BF16") {
    append(golden_.Layer<uint16_t>(id, name));
  } else {
    append(golden_.Layer<float>(id, name));
  }
  return bytes;
}

absl::StatusOr<std::vector<std::byte>> GoldenStep::Fetch(
    const GoldenLayer& layer, absl::Span<const RowId> ids) const {
  std::vector<std::byte> rows(ids.size() * checkpoint_.row_format().row_bytes(),
                              std::byte{0xA5});
  ENGRAM_RETURN_IF_ERROR(
      checkpoint_.GatherRows(layer.index, ids, absl::MakeSpan(rows)));
  return rows;
}

absl::StatusOr<StepInput> GoldenStep::Input(
    const GoldenLayer& layer, size_t first, size_t count,
    absl::Span<const uint8_t> mask) const {
  StepInput input;
  input.layer_index = layer.index;
  input.dtype = layer.dtype;
  input.tokens = count;
  if (!mask.empty()) {
    mask = mask.subspan(first, count);
    input.mask.assign(mask.begin(), mask.end());
  }
  std::vector<RowId> live;
  for (size_t token = 0; token < count; ++token) {
    if (!input.Lives(token)) continue;
    const auto* ids = &layer.row_ids[(first + token) * config().columns()];
    live.insert(live.end(), ids, ids + config().columns());
  }
  ENGRAM_ASSIGN_OR_RETURN(input.packed_rows, Fetch(layer, live));
  const size_t token_bytes = layer.streams_in.size() / golden_.positions();
  const std::byte* streams = &layer.streams_in[first * token_bytes];
  input.streams.assign(streams, streams + count * token_bytes);
  return input;
}

absl::StatusOr<StepInput> GoldenStep::Input(const GoldenLayer& layer) const {
  return Input(layer, 0, golden_.positions(), golden_.mask());
}

absl::StatusOr<StepResult> GoldenStep::RunBy(size_t step,
                                             const EngramBlock& block,
                                             const GoldenLayer& layer) const {
  StepResult all;
  for (size_t first = 0; first < golden_.positions(); first += step) {
    const size_t count = std::min(step, golden_.positions() - first);
    ENGRAM_ASSIGN_OR_RETURN(const StepInput input,
                            Input(layer, first, count, golden_.mask()));
    ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
    all.Append(result);
  }
  return all;
}

StepResult GoldenStep::Wanted(const GoldenLayer& layer) const {
  StepResult wanted;
  wanted.streams = StreamBytesOf(layer.id, "streams_out");
  wanted.gate = golden_.Layer<float>(layer.id, "gate");
  wanted.kv = golden_.Layer<uint16_t>(layer.id, "kv");
  return wanted;
}

absl::StatusOr<double> GoldenStep::CheckKv(const EngramBlock& block,
                                           const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepInput input,
                          Input(layer, 0, golden_.positions(), {}));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
  ENGRAM_ASSIGN_OR_RETURN(
      const uint64_t equal,
      CountEqualKv(config().wkv_out(), result.kv,
                   golden_.Layer<uint16_t>(layer.id, "kv")));
  ENGRAM_RETURN_IF_ERROR(CheckEqualShare(equal, result.kv.size()));
  return static_cast<double>(equal) / static_cast<double>(result.kv.size());
}

absl::Status GoldenStep::CheckOwnKv(const EngramBlock& block,
                                    const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepInput input, Input(layer));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
  ENGRAM_ASSIGN_OR_RETURN(
      const GateWeights weights,
      ReadGateWeights(config(), checkpoint_.layers()[layer.index]));
  return CompareWithOwnKv(weights, Inputs::kGolden, input, result);
}

absl::Status GoldenStep::CheckWanted(const EngramBlock& block,
                                     const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepInput input, Input(layer));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
  return CompareWithWanted(config(), Inputs::kGolden, input, result,
                           Wanted(layer));
}

absl::Status GoldenStep::CheckDead(const EngramBlock& block,
                                   const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepInput input, Input(layer));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
  return CompareDead(config(), input, result);
}

absl::Status GoldenStep::CheckContribution(const EngramBlock& block,
                                           const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepInput input, Input(layer));
  ENGRAM_ASSIGN_OR_RETURN(const StepResult result, RunStep(block, input));
  return CompareContribution(config(), input, result);
}

absl::Status GoldenStep::CheckAnyBatch(const EngramBlock& block,
                                       const GoldenLayer& layer) const {
  ENGRAM_ASSIGN_OR_RETURN(const StepResult all,
                          RunBy(golden_.positions(), block, layer));
  for (const size_t step : {1, 3, 5}) {
    ENGRAM_ASSIGN_OR_RETURN(const StepResult pieces, RunBy(step, block, layer));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareBits(pieces, all), absl::StrCat("in steps of ", step)));
  }
  return absl::OkStatus();
}

}  // namespace engram::test
