#include "engram_client/ctl/load_step_inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engram_client/ctl/load_random.h"
#include "engram_client/ctl/tensor_file.h"

namespace engram::ctl {
namespace {

constexpr uint64_t kMaxStart = 10000;

std::vector<std::byte> DrawStreams(LoadRandom& random, size_t bytes) {
  // Sign and mantissa as drawn, an exponent of 2^-6 .. 2^1.
  constexpr uint16_t kSignAndMantissa = 0x807F;
  constexpr uint16_t kFirstExponent = 121;
  constexpr uint16_t kExponents = 8;
  std::vector<std::byte> streams(bytes);
  for (size_t at = 0; at < bytes; at += sizeof(uint16_t)) {
    const uint64_t bits = random.Next();
    const uint16_t exponent = kFirstExponent + (bits >> 16) % kExponents;
    const uint16_t value =
        static_cast<uint16_t>((bits & kSignAndMantissa) | (exponent << 7));
    std::memcpy(&streams[at], &value, sizeof(value));
  }
  return streams;
}

// One kind of result of one layer, so many bytes a token.
struct Part {
  absl::string_view name;
  absl::Span<const std::byte> wanted;
  absl::Span<const std::byte> got;
  size_t width;
};

std::vector<Part> PartsOf(const ModelInfo& model, const LayerBuffers& wanted,
                          const LayerBuffers& got) {
  std::vector<Part> parts;
  const size_t hc = model.config.hc_mult;
  const size_t dim = model.config.dim;
  if (!wanted.streams.empty()) {
    parts.push_back({"streams", wanted.streams, got.streams,
                     StreamBytes(model, StepDtype::kBf16)});
  }
  if (!wanted.gate.empty()) {
    parts.push_back(
        {"gate", BytesOf(wanted.gate), BytesOf(got.gate), hc * sizeof(float)});
    parts.push_back({"value", BytesOf(wanted.value), BytesOf(got.value),
                     dim * sizeof(uint16_t)});
  }
  return parts;
}

// The first byte of a token's part that differs, if any does.
std::optional<size_t> DifferingByte(const Part& part, uint64_t token) {
  const auto wanted = part.wanted.subspan(token * part.width, part.width);
  const auto got = part.got.subspan(token * part.width, part.width);
  if (std::memcmp(wanted.data(), got.data(), part.width) == 0) {
    return std::nullopt;
  }
  return std::mismatch(wanted.begin(), wanted.end(), got.begin()).first -
         wanted.begin();
}

LoadMismatch Describe(const ModelInfo& model, LayerId layer,
                      const StepInput& input, uint64_t token, size_t byte,
                      const Part& part) {
  const size_t at = token * part.width + byte;
  LoadMismatch mismatch = {.version = model.version,
                           .layer = layer,
                           .item = input.number,
                           .slot = token,
                           .byte = byte,
                           .wanted = static_cast<uint8_t>(part.wanted[at]),
                           .got = static_cast<uint8_t>(part.got[at])};
  mismatch.text = absl::StrCat(
      "wrong step: table ", model.version, ", layer ", ToInt(layer), ", input ",
      input.number, ", token ", token, " of ", input.tokens(), ": byte ", byte,
      " of its ", part.name, " is 0x", absl::Hex(mismatch.got, absl::kZeroPad2),
      ", not 0x", absl::Hex(mismatch.wanted, absl::kZeroPad2),
      " as in the first answer");
  return mismatch;
}

}  // namespace

StepInput DrawStepInput(const ModelInfo& model, size_t layers, uint64_t number,
                        uint64_t tokens, uint64_t seed) {
  LoadRandom random(seed);
  StepInput input;
  input.number = number;
  const uint64_t lookback = model.config.max_lookback();
  if (number > 0) {
    input.sequence.start_position = lookback + random.Below(kMaxStart);
  }
  const auto draw_tokens = [&](uint64_t count, std::vector<uint32_t>& out) {
    for (uint64_t i = 0; i < count; ++i) {
      out.push_back(
          static_cast<uint32_t>(random.Below(model.config.vocab_size)));
    }
  };
  draw_tokens(std::min(input.sequence.start_position, lookback),
              input.sequence.lookback);
  draw_tokens(tokens, input.sequence.token_ids);
  for (size_t i = 0; i < layers; ++i) {
    input.streams.push_back(
        DrawStreams(random, tokens * StreamBytes(model, StepDtype::kBf16)));
  }
  return input;
}

StepResults StepResults::Make(const ModelInfo& model, size_t layers,
                              StepReturn what, uint64_t tokens) {
  StepResults results;
  results.capacity = tokens;
  for (size_t i = 0; i < layers; ++i) {
    results.layers.push_back(
        MakeBuffers(model, StepDtype::kBf16, what, tokens));
  }
  results.Poison(tokens);
  return results;
}

void StepResults::Poison(uint64_t tokens) {
  const auto poison = [&](auto& values, auto value) {
    std::fill_n(values.begin(), values.size() / capacity * tokens, value);
  };
  for (LayerBuffers& layer : layers) {
    poison(layer.streams, std::byte{0xFF});
    poison(layer.gate, std::numeric_limits<float>::quiet_NaN());
    poison(layer.value, uint16_t{0xFFFF});
  }
}

std::vector<StepLayerIo> StepResults::Io(const ModelInfo& model,
                                         StepReturn what,
                                         absl::Span<const LayerId> layer_ids,
                                         const StepInput& input) {
  const uint64_t tokens = input.tokens();
  std::vector<StepLayerIo> ios;
  for (size_t i = 0; i < layers.size(); ++i) {
    StepLayerIo io = {.layer = layer_ids[i], .streams = input.streams[i]};
    if (what == StepReturn::kStreams) {
      io.streams_out =
          absl::MakeSpan(layers[i].streams)
              .first(tokens * StreamBytes(model, StepDtype::kBf16));
    } else {
      io.gate =
          absl::MakeSpan(layers[i].gate).first(tokens * model.config.hc_mult);
      io.value =
          absl::MakeSpan(layers[i].value).first(tokens * model.config.dim);
    }
    ios.push_back(io);
  }
  return ios;
}

std::optional<LoadMismatch> CompareSteps(const ModelInfo& model,
                                         absl::Span<const LayerId> layer_ids,
                                         const StepInput& input,
                                         const StepResults& wanted,
                                         const StepResults& got) {
  std::optional<LoadMismatch> mismatch;
  uint64_t wrong = 0;
  for (size_t i = 0; i < layer_ids.size(); ++i) {
    const std::vector<Part> parts =
        PartsOf(model, wanted.layers[i], got.layers[i]);
    for (uint64_t token = 0; token < input.tokens(); ++token) {
      bool differs = false;
      for (const Part& part : parts) {
        const std::optional<size_t> byte = DifferingByte(part, token);
        if (!byte.has_value()) continue;
        differs = true;
        if (mismatch.has_value()) continue;
        mismatch = Describe(model, layer_ids[i], input, token, *byte, part);
      }
      if (differs) ++wrong;
    }
  }
  if (mismatch.has_value()) mismatch->wrong = wrong;
  return mismatch;
}

}  // namespace engram::ctl
