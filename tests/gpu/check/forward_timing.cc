// The GPU block's Forward, from host memory to host memory.

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/block/gpu_block.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/block_compare.h"
#include "tests/gpu/check/block_model.h"
#include "tests/gpu/check/checks.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kWarmUp = 3;

absl::Status TimeOne(GpuContext& context, const EngramBlock& block,
                     size_t tokens, double host_rate) {
  Random random(context.seed() + tokens);
  const test::StepInput input = RandomStep(block, 0, StreamDtype::kBf16, tokens,
                                           DeadTokens::kNone, random);
  ENGRAM_ASSIGN_OR_RETURN(const RowsBuffer rows,
                          block.AllocateRows(input.packed_rows.size()));
  std::copy(input.packed_rows.begin(), input.packed_rows.end(),
            rows.bytes().begin());
  std::vector<std::byte> out(input.streams.size());
  std::vector<double> samples;
  const size_t repeats = context.Sized<size_t>(20, 2);
  for (size_t i = 0; i < kWarmUp + repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ENGRAM_RETURN_IF_ERROR(block.Forward(0, input.dtype, rows.bytes(),
                                         input.streams, {},
                                         {.streams = absl::MakeSpan(out)}));
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    if (i >= kWarmUp) samples.push_back(took.count());
  }
  Figure figure;
  figure.name = absl::StrCat("Forward host to host, ", tokens, " tokens");
  figure.time_us = Summarize(std::move(samples));
  figure.useful =
      static_cast<double>(input.packed_rows.size() + 2 * out.size());
  figure.unit = "B";
  figure.ceiling = "bus time of its bytes";
  figure.note = "host clock; streams in memory that is not pinned";
  const double floor_us = figure.useful / host_rate * 1e6;
  context.report().AddFloor(std::move(figure), floor_us, std::nullopt);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> TimeForward(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const BlockModel* model, context.V41Model());
  ENGRAM_ASSIGN_OR_RETURN(const double host_rate, context.HostToDeviceRate());
  GpuBlockOptions options;
  options.device = context.device().index;
  options.pool = &context.pool();
  options.tile_tokens = context.Sized<size_t>(options.tile_tokens, 8);
  ENGRAM_ASSIGN_OR_RETURN(
      const auto block,
      CreateGpuEngramBlock(model->checkpoint(), model->token_map(), options));
  for (const size_t tokens :
       {context.Sized<size_t>(64, 5), context.Sized<size_t>(1024, 9)}) {
    ENGRAM_RETURN_IF_ERROR(TimeOne(context, *block, tokens, host_rate));
  }
  return Passed("one layer, streams and rows in host memory");
}

}  // namespace engram::gpu_check
