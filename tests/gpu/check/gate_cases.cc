#include "tests/gpu/check/gate_cases.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"

namespace engram::gpu_check {
namespace {

template <typename T>
bool AllPoison(const std::vector<T>& values, uint8_t poison) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); ++i) {
    if (bytes[i] != poison) return false;
  }
  return true;
}

absl::Status CompareGateValues(const GateCase& gate, const GateInput& input,
                               const GateResult& got, GateCounts& counts) {
  std::vector<float> wanted(got.gate.size());
  ComputeGate(input.weights, gate.dtype, input.streams, input.kv, input.mask,
              absl::MakeSpan(wanted));
  for (size_t i = 0; i < wanted.size(); ++i) {
    ++counts.gates;
    if (std::memcmp(&wanted[i], &got.gate[i], sizeof(float)) == 0) continue;
    ++counts.differ;
    if (!(std::fabs(wanted[i] - got.gate[i]) <= 1e-6F)) {
      return absl::DataLossError(absl::StrCat("gate ", i, " is ", got.gate[i],
                                              " instead of ", wanted[i]));
    }
  }
  return absl::OkStatus();
}

// Streams from the device's own gate: to the bit.
absl::Status CompareStreams(const GateCase& gate, const GateInput& input,
                            const std::vector<float>& gates,
                            const std::vector<std::byte>& got) {
  std::vector<std::byte> wanted(got.size());
  AddContribution(input.weights, gate.dtype, input.streams, input.kv, gates,
                  input.mask, absl::MakeSpan(wanted));
  const size_t bytes = StreamBytes(gate.dtype);
  for (size_t i = 0; i < wanted.size(); i += bytes) {
    if (std::memcmp(&wanted[i], &got[i], bytes) == 0) continue;
    return absl::DataLossError(
        absl::StrCat("streams: feature ", i / bytes % gate.dim, " of stream ",
                     i / bytes / gate.dim % gate.hc, " of token ",
                     i / bytes / gate.dim / gate.hc, " differs"));
  }
  return absl::OkStatus();
}

absl::Status CompareValueAndStreams(const GateCase& gate,
                                    const GateInput& input,
                                    const GateResult& got) {
  const size_t width = size_t{gate.hc + 1} * gate.dim;
  for (size_t i = 0; i < got.value.size(); ++i) {
    const size_t token = i / gate.dim;
    const bool lives = input.mask.empty() || input.mask[token] != 0;
    const uint16_t wanted =
        lives ? input.kv[token * width + gate.hc * gate.dim + i % gate.dim] : 0;
    if (got.value[i] != wanted) {
      return absl::DataLossError(absl::StrCat("value ", i, " differs"));
    }
  }
  return CompareStreams(gate, input, got.gate, got.streams);
}

}  // namespace

std::string GateCase::Name() const {
  return absl::StrCat(tokens, " tokens, hc ", hc, ", dim ", dim,
                      dtype == StreamDtype::kBf16 ? ", bf16" : ", float32",
                      some_dead ? ", some dead" : "",
                      shifted ? ", not aligned" : "",
                      in_place ? ", in place" : "", ", outputs ", outputs);
}
GateInput MakeGateInput(const GateCase& gate, Random& random) {
  GateInput input;
  input.weights = {gate.hc, gate.dim, 1e-20F,
                   RandomGateWeights(random, size_t{gate.hc} * gate.dim)};
  input.streams =
      RandomStreams(random, gate.dtype, gate.tokens * gate.hc, gate.dim);
  const size_t width = size_t{gate.hc + 1} * gate.dim;
  input.kv = RandomKv(random, gate.tokens * width);
  if (!gate.some_dead) {
    input.live_kv = input.kv;
    return input;
  }
  input.mask = RandomMask(random, gate.tokens, 3);
  for (size_t token = 0; token < gate.tokens; ++token) {
    if (input.mask[token] == 0) {
      input.live_index.push_back(-1);
      continue;
    }
    input.live_index.push_back(
        static_cast<int32_t>(input.live_kv.size() / width));
    const uint16_t* kv = &input.kv[token * width];
    input.live_kv.insert(input.live_kv.end(), kv, kv + width);
  }
  return input;
}

absl::Status CompareGate(const GateCase& gate, const GateInput& input,
                         const GateResult& got, GateCounts& counts) {
  ENGRAM_RETURN_IF_ERROR(CompareGateValues(gate, input, got, counts));
  return CompareValueAndStreams(gate, input, got);
}

absl::Status CompareGateSet(const GateCase& gate, const GateInput& input,
                            const GateResult& some, const GateResult& all,
                            uint8_t poison) {
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() &&
           (a.empty() ||
            std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
  };
  const bool streams = gate.outputs & 1
                           ? same(some.streams, all.streams)
                           : (gate.in_place ? same(some.streams, input.streams)
                                            : AllPoison(some.streams, poison));
  const bool gates = gate.outputs & 2 ? same(some.gate, all.gate)
                                      : AllPoison(some.gate, poison);
  const bool value = gate.outputs & 4 ? same(some.value, all.value)
                                      : AllPoison(some.value, poison);
  if (streams && gates && value) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      streams ? "" : "streams ", gates ? "" : "gate ", value ? "" : "value ",
      "other than with all outputs, or written unasked"));
}

}  // namespace engram::gpu_check
