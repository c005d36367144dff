#include "tests/testing/step_run.h"

#include <cstring>

#include "core/base/status_macros.h"
#include "core/model/number_formats.h"

namespace engram::test {
namespace {

template <typename T>
std::vector<T> Poisoned(size_t count, uint8_t poison) {
  std::vector<T> values(count);
  if (count > 0) std::memset(values.data(), poison, count * sizeof(T));
  return values;
}

template <typename T>
void AppendTo(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

void StepResult::Append(const StepResult& more) {
  AppendTo(streams, more.streams);
  AppendTo(gate, more.gate);
  AppendTo(value, more.value);
  AppendTo(kv, more.kv);
}

bool SameBits(const StepResult& a, const StepResult& b) {
  return a.streams == b.streams && a.value == b.value && a.kv == b.kv &&
         a.gate.size() == b.gate.size() &&
         (a.gate.empty() || std::memcmp(a.gate.data(), b.gate.data(),
                                        a.gate.size() * sizeof(float)) == 0);
}

StepResult PoisonedResult(const EngramConfig& config, const StepInput& input,
                          const WantedOutputs& wanted, uint8_t poison) {
  const auto count = [&](bool is_wanted, size_t width) {
    return is_wanted ? input.tokens * width : 0;
  };
  StepResult result;
  result.streams =
      Poisoned<std::byte>(count(wanted.streams, input.stream_bytes()), poison);
  result.gate = Poisoned<float>(count(wanted.gate, config.hc_mult), poison);
  result.value = Poisoned<uint16_t>(count(wanted.value, config.dim), poison);
  result.kv = Poisoned<uint16_t>(count(wanted.kv, config.wkv_out()), poison);
  return result;
}

absl::StatusOr<StepResult> RunStep(const EngramBlock& block,
                                   const StepInput& input,
                                   const WantedOutputs& wanted,
                                   uint8_t poison) {
  StepResult result = PoisonedResult(block.config(), input, wanted, poison);
  ENGRAM_RETURN_IF_ERROR(block.Forward(
      input.layer_index, input.dtype, input.packed_rows, input.streams,
      input.mask,
      {absl::MakeSpan(result.streams), absl::MakeSpan(result.gate),
       absl::MakeSpan(result.value), absl::MakeSpan(result.kv)}));
  return result;
}

double StreamAt(const std::vector<std::byte>& streams, StreamDtype dtype,
                size_t i) {
  if (dtype == StreamDtype::kBf16) {
    uint16_t bits;
    std::memcpy(&bits, &streams[2 * i], sizeof(bits));
    return Bf16ToFloat(bits);
  }
  float value;
  std::memcpy(&value, &streams[4 * i], sizeof(value));
  return value;
}

}  // namespace engram::test
