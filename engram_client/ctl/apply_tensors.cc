#include "engram_client/ctl/apply_tensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/tensor_file.h"

namespace engram::ctl {
namespace {

constexpr absl::string_view kStreamsIn = "streams_in";

std::string StreamsInName(LayerId layer) {
  return LayerTensorName(ToInt(layer), kStreamsIn);
}

const char* DtypeName(StepDtype dtype) {
  return dtype == StepDtype::kBf16 ? "BF16" : "F32";
}

// A layer of the file that the model does not have would else be ignored.
absl::Status CheckLayersAreKnown(const SafetensorsFile& file,
                                 const ModelInfo& model) {
  std::set<std::string> known;
  for (const LayerId layer : model.layers) known.insert(StreamsInName(layer));
  for (const auto& [name, tensor] : file.tensors()) {
    if (!absl::EndsWith(name, absl::StrCat(".", kStreamsIn))) continue;
    if (known.contains(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no layer of tensor ", name, "; it has ",
                     absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// Copies [sequences, count, width] into [sequences, length, width].
template <typename T>
void Place(const std::vector<T>& step, const TokenBatch& batch,
           const Chunk& chunk, std::vector<T>& whole) {
  const size_t width = step.size() / (batch.sequences * chunk.count);
  for (uint64_t s = 0; s < batch.sequences; ++s) {
    std::copy_n(step.begin() + s * chunk.count * width, chunk.count * width,
                whole.begin() + (s * batch.length + chunk.start) * width);
  }
}

}  // namespace

absl::StatusOr<ApplyInput> ReadApplyInput(const SafetensorsFile& file,
                                          const ModelInfo& model) {
  ApplyInput input;
  ENGRAM_ASSIGN_OR_RETURN(input.tokens, ReadTokenBatch(file));
  ENGRAM_RETURN_IF_ERROR(CheckLayersAreKnown(file, model));
  for (const LayerId layer : model.layers) {
    const std::string name = StreamsInName(layer);
    if (!file.tensors().contains(name)) continue;
    ENGRAM_ASSIGN_OR_RETURN(TensorView streams,
                            FindTensor(file, name, {"BF16", "F32"}, 4));
    ENGRAM_RETURN_IF_ERROR(
        CheckShape(streams, {input.tokens.sequences, input.tokens.length,
                             model.config.hc_mult, model.config.dim}));
    if (!input.layers.empty() &&
        streams.dtype != input.layers[0].streams.dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", name, " is ", streams.dtype, ", but ",
          input.layers[0].streams.name, " is ", input.layers[0].streams.dtype,
          ": a step has streams of one dtype"));
    }
    input.dtype = streams.dtype == "BF16" ? StepDtype::kBf16 : StepDtype::kF32;
    input.layers.push_back({layer, std::move(streams)});
  }
  if (input.layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has no streams: no tensor ",
        absl::StrJoin(model.layers, " or ", [](std::string* out, LayerId id) {
          out->append(StreamsInName(id));
        })));
  }
  return input;
}

size_t StreamBytes(const ModelInfo& model, StepDtype dtype) {
  return size_t{model.config.hc_mult} * model.config.dim *
         (dtype == StepDtype::kBf16 ? sizeof(uint16_t) : sizeof(float));
}

LayerBuffers MakeBuffers(const ModelInfo& model, StepDtype dtype,
                         StepReturn what, uint64_t positions) {
  LayerBuffers buffers;
  if (what == StepReturn::kStreams) {
    buffers.streams.resize(positions * StreamBytes(model, dtype));
  } else {
    buffers.gate.resize(positions * model.config.hc_mult);
    buffers.value.resize(positions * model.config.dim);
  }
  return buffers;
}

absl::StatusOr<std::vector<std::byte>> ChunkOf(const TensorView& streams,
                                               const Chunk& chunk) {
  const uint64_t sequences = streams.shape[0];
  const uint64_t length = streams.shape[1];
  const size_t width = streams.bytes.size() / (sequences * length);
  const size_t part = chunk.count * width;
  std::vector<std::byte> bytes(sequences * part);
  ENGRAM_RETURN_IF_ERROR(streams.file->Guarded([&] {
    for (uint64_t s = 0; s < sequences; ++s) {
      std::memcpy(bytes.data() + s * part,
                  streams.bytes.data() + (s * length + chunk.start) * width,
                  part);
    }
  }));
  return bytes;
}

void PlaceChunk(const LayerBuffers& step, const TokenBatch& batch,
                const Chunk& chunk, LayerBuffers& whole) {
  Place(step.streams, batch, chunk, whole.streams);
  Place(step.gate, batch, chunk, whole.gate);
  Place(step.value, batch, chunk, whole.value);
}

absl::Status WriteResults(const std::string& path, const ModelInfo& model,
                          const ApplyInput& input, StepReturn what,
                          absl::Span<const LayerBuffers> results) {
  const uint64_t sequences = input.tokens.sequences;
  const uint64_t length = input.tokens.length;
  const uint64_t hc = model.config.hc_mult;
  const uint64_t dim = model.config.dim;
  std::vector<OutputTensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto name = [&](absl::string_view suffix) {
      return LayerTensorName(ToInt(input.layers[i].layer), suffix);
    };
    if (what == StepReturn::kStreams) {
      tensors.push_back({{name("streams_out"),
                          DtypeName(input.dtype),
                          {sequences, length, hc, dim}},
                         results[i].streams});
      continue;
    }
    tensors.push_back({{name("gate"), "F32", {sequences, length, hc}},
                       BytesOf(results[i].gate)});
    tensors.push_back({{name("value"), "BF16", {sequences, length, dim}},
                       BytesOf(results[i].value)});
  }
  return WriteTensorFile(path, tensors);
}

}  // namespace engram::ctl
