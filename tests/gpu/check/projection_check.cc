// The projection on the device: against the CPU's and against sums in double
// precision, and, in the invariant mode, the same bits for any number of
// tokens.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/project/gpu_projection.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/projection_cases.h"
#include "tests/testing/step_compare.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kGuardValues = 256;
constexpr uint16_t kPoisonValue = 0xA5A5;
constexpr uint32_t kManyOutputs = 32;

struct Shape {
  uint32_t in;
  uint32_t out;
};

absl::StatusOr<std::vector<uint16_t>> Run(GpuContext& context,
                                          const GpuProjection& projection,
                                          absl::Span<const uint16_t> values,
                                          size_t first, size_t count) {
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer tokens,
                          Upload(InLayout(values, projection.in(), first, count,
                                          projection.token_layout(count))));
  const size_t outputs = count * projection.out();
  ENGRAM_ASSIGN_OR_RETURN(
      const DeviceBuffer kv,
      AllocatePoisoned((outputs + kGuardValues) * sizeof(uint16_t), 0xA5));
  ENGRAM_RETURN_IF_ERROR(projection.Project(tokens.as<uint16_t>(), count,
                                            kv.as<uint16_t>(),
                                            context.stream().handle()));
  ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
  ENGRAM_ASSIGN_OR_RETURN(std::vector<uint16_t> got,
                          Download<uint16_t>(kv, outputs + kGuardValues));
  for (size_t i = outputs; i < got.size(); ++i) {
    if (got[i] != kPoisonValue) {
      return absl::DataLossError(
          absl::StrCat("value ", i - outputs, " past the end was written"));
    }
  }
  got.resize(outputs);
  return got;
}

// Tokens [first, first + count) alone have the bits that they have in `all`.
absl::Status CompareSubset(GpuContext& context, const GpuProjection& projection,
                           absl::Span<const uint16_t> values,
                           const std::vector<uint16_t>& all, size_t first,
                           size_t count) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> some,
                          Run(context, projection, values, first, count));
  for (size_t i = 0; i < some.size(); ++i) {
    if (some[i] == all[first * projection.out() + i]) continue;
    return absl::DataLossError(absl::StrCat("token ", i / projection.out(),
                                            " of ", count, " from ", first,
                                            ": output ", i % projection.out(),
                                            " has other bits than in one "
                                            "product of all"));
  }
  return absl::OkStatus();
}

struct Totals {
  uint64_t products = 0;
  uint64_t values = 0;
  uint64_t differ = 0;
  bool fast = false;
};

// What both modes must give.
absl::StatusOr<std::vector<uint16_t>> CompareValues(
    GpuContext& context, const GpuProjection& projection,
    const RandomWeights& weights, absl::Span<const uint16_t> values,
    const std::vector<uint16_t>& wanted, Random& random, Totals& totals) {
  const size_t tokens = values.size() / weights.in;
  ENGRAM_ASSIGN_OR_RETURN(std::vector<uint16_t> kv,
                          Run(context, projection, values, 0, tokens));
  ENGRAM_RETURN_IF_ERROR(CompareWithDouble(
      weights, values, kv, context.quick() ? 100 : 1000, random));
  // Where one sum of a few cancels there is no large one to measure it by.
  if (weights.out < kManyOutputs) return kv;
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t equal,
                          test::CountEqualKv(weights.out, kv, wanted));
  totals.values += kv.size();
  totals.differ += kv.size() - equal;
  return kv;
}

absl::Status RunShape(GpuContext& context, const Shape& shape, size_t tokens,
                      const std::vector<size_t>& counts, Totals& totals) {
  Random random(context.seed() + shape.in + shape.out);
  const RandomWeights weights = MakeWeights(shape.in, shape.out, random);
  const std::vector<uint16_t> values = RandomTokens(random, tokens, shape.in);
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> wanted,
                          ProjectOnCpu(weights, values, &context.pool()));
  GpuProjection::Options options;
  options.max_tokens = tokens;
  ENGRAM_ASSIGN_OR_RETURN(
      const auto invariant,
      GpuProjection::Create(weights.View(), options, &context.pool()));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> all,
                          CompareValues(context, *invariant, weights, values,
                                        wanted, random, totals));
  for (const size_t count : counts) {
    for (const size_t first :
         {size_t{0}, tokens - count, (tokens - count) / 3}) {
      ENGRAM_RETURN_IF_ERROR(
          CompareSubset(context, *invariant, values, all, first, count));
      ++totals.products;
    }
  }
  options.mode = UsableProjectionMode(ProjectionMode::kFast);
  totals.fast = options.mode == ProjectionMode::kFast;
  if (!totals.fast) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(
      const auto fast,
      GpuProjection::Create(weights.View(), options, &context.pool()));
  return Annotate(
      CompareValues(context, *fast, weights, values, wanted, random, totals)
          .status(),
      "fast mode");
}

}  // namespace

absl::StatusOr<Outcome> CheckProjection(GpuContext& context) {
  struct Case {
    Shape shape;
    size_t tokens;
    std::vector<size_t> counts;
  };
  std::vector<Case> cases;
  if (context.quick()) {
    cases = {{{32, 8}, 9, {1, 8}},
             {{96, 40}, 70, {1, 7, 17, 33, 65}},
             {{160, 77}, 130, {1, 64, 129}}};
  } else {
    std::vector<size_t> every;
    for (size_t count = 1; count <= 72; ++count) every.push_back(count);
    every.insert(every.end(), {100, 127, 128, 129, 191, 255, 256, 257, 300});
    cases = {{{32, 1}, 40, {1, 8, 33}},
             {{96, 40}, 301, every},
             {{224, 1027}, 301, every},
             {{6144, 25600},
              300,
              {1, 2, 3, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256}}};
  }
  Totals totals;
  for (const Case& one : cases) {
    ENGRAM_RETURN_IF_ERROR(
        Annotate(RunShape(context, one.shape, one.tokens, one.counts, totals),
                 absl::StrCat(one.shape.in, " to ", one.shape.out, ", ",
                              one.tokens, " tokens")));
  }
  ENGRAM_RETURN_IF_ERROR(
      test::CheckEqualShare(totals.values - totals.differ, totals.values));
  if (!totals.fast) {
    context.report().AddNote("fast projection: not compared, no cuBLASLt");
  }
  return Passed(
      absl::StrCat(totals.products,
                   " products with the same bits for any tokens beside "
                   "them; ",
                   totals.differ, " of ", totals.values,
                   " values differ from the CPU's, within an ulp; fast mode ",
                   totals.fast ? "too" : "not compared: no cuBLASLt"));
}

}  // namespace engram::gpu_check
