#ifndef ENGRAM_TESTS_TESTING_STEP_COMPARE_H_
#define ENGRAM_TESTS_TESTING_STEP_COMPARE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/gate/gate.h"
#include "core/model/config.h"
#include "tests/testing/step_run.h"

// How a step is compared, with the oracle and with another backend. The square
// root near dot = 0, and sums that cancel, magnify what kv may differ by: so
// gate and streams are compared closely with what follows from the result's
// own kv, and with the wanted ones within what kv may differ by.
//
// Each returns DATA_LOSS naming the first place that is off, both values and
// what was allowed. NaN is always off.

namespace engram::test {

// Distance to the next value of the format, for a value of its size.
double UlpOf(StreamDtype dtype, double value);

// Of kv, how many values are equal; the others are within 1 bf16 ulp of the
// wanted value, or 1e-5 of the largest at that position where that is more.
// `width`: values of one position.
absl::StatusOr<uint64_t> CountEqualKv(size_t width,
                                      absl::Span<const uint16_t> kv,
                                      absl::Span<const uint16_t> wanted);

// Another order of sums leaves at least this share of kv equal. Of a few
// values it says nothing.
absl::Status CheckEqualShare(uint64_t equal, uint64_t all);

enum class Inputs {
  kGolden,
  // Over many random tokens some gate's dot is near 0, where the root makes
  // much of a little: there a dot within 0.1 / sqrt(dim) of the wanted one,
  // within 1e-6 from the same kv, stands for the gate. And some value is a sum
  // that cancels: its own difference, which is kv's matter, stands for its ulp.
  kRandom,
};

// The gate within 1e-6 of double precision from the result's kv, streams
// within 1 ulp of the sum that follows.
absl::Status CompareWithOwnKv(const GateWeights& weights, Inputs inputs,
                              const StepInput& input, const StepResult& result);

// Gate and streams of live tokens against wanted ones: the gate within 5e-4,
// streams within ulp(out) + gate * ulp(value) + |d gate * value|.
// Needs gate and streams of both and the wanted kv; for kRandom both kv.
absl::Status CompareWithWanted(const EngramConfig& config, Inputs inputs,
                               const StepInput& input, const StepResult& result,
                               const StepResult& wanted);

// Dead tokens: streams bit for bit, gate and value +0.
absl::Status CompareDead(const EngramConfig& config, const StepInput& input,
                         const StepResult& result);

// A caller that adds gate * value itself gets the same streams, to the bit.
absl::Status CompareContribution(const EngramConfig& config,
                                 const StepInput& input,
                                 const StepResult& result);

// Equal bits in every output; names the first output and place that differ.
absl::Status CompareBits(const StepResult& result, const StepResult& wanted);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_STEP_COMPARE_H_
