#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/block_compare.h"
#include "tests/testing/step_compare.h"

namespace engram::gpu_check {
namespace {

using test::StepInput;
using test::StepResult;
using test::WantedOutputs;

constexpr uint8_t kPoison = 0xA5;

// Keeps those outputs of `all` that are wanted.
StepResult Part(const StepResult& all, const WantedOutputs& wanted) {
  StepResult part;
  if (wanted.streams) part.streams = all.streams;
  if (wanted.gate) part.gate = all.gate;
  if (wanted.value) part.value = all.value;
  if (wanted.kv) part.kv = all.kv;
  return part;
}

absl::Status CompareInPlace(const EngramBlock& block, const StepInput& input,
                            const StepResult& all) {
  StepResult in_place;
  in_place.streams = input.streams;
  const absl::Span<std::byte> streams = absl::MakeSpan(in_place.streams);
  ENGRAM_RETURN_IF_ERROR(block.Forward(input.layer_index, input.dtype,
                                       input.packed_rows, streams, input.mask,
                                       {.streams = streams}));
  return Annotate(
      test::CompareBits(in_place, Part(all, {true, false, false, false})),
      "streams in place");
}

absl::Status CompareBlockRows(const EngramBlock& block, const StepInput& input,
                              const StepResult& all) {
  ENGRAM_ASSIGN_OR_RETURN(const RowsBuffer rows,
                          block.AllocateRows(input.packed_rows.size()));
  std::copy(input.packed_rows.begin(), input.packed_rows.end(),
            rows.bytes().begin());
  StepResult result = test::PoisonedResult(block.config(), input, {}, kPoison);
  ENGRAM_RETURN_IF_ERROR(block.Forward(
      input.layer_index, input.dtype, rows.bytes(), input.streams, input.mask,
      {absl::MakeSpan(result.streams), absl::MakeSpan(result.gate),
       absl::MakeSpan(result.value), absl::MakeSpan(result.kv)}));
  return Annotate(test::CompareBits(result, all), "rows of the block's memory");
}

// Tokens [first, first + count) of a step.
StepInput PieceOf(const StepInput& input, size_t row_bytes, size_t first,
                  size_t count) {
  const auto live_before = [&](size_t token) {
    size_t live = 0;
    for (size_t t = 0; t < token; ++t) live += input.Lives(t) ? 1 : 0;
    return live;
  };
  StepInput piece = input;
  piece.tokens = count;
  const size_t bytes = input.stream_bytes();
  piece.streams.assign(&input.streams[first * bytes],
                       &input.streams[first * bytes] + count * bytes);
  if (!input.mask.empty()) {
    piece.mask.assign(&input.mask[first], &input.mask[first] + count);
  }
  const std::byte* rows = input.packed_rows.data();
  piece.packed_rows.assign(rows + live_before(first) * row_bytes,
                           rows + live_before(first + count) * row_bytes);
  return piece;
}

size_t RowBytesOfToken(const EngramBlock& block) {
  return block.config().columns() * block.row_format().row_bytes();
}

}  // namespace

absl::Status CompareCallForms(const BlockPair& pair, size_t tokens,
                              uint64_t seed) {
  Random random(seed);
  for (const StreamDtype dtype : {StreamDtype::kBf16, StreamDtype::kF32}) {
    const StepInput input =
        RandomStep(pair.block, 0, dtype, tokens, DeadTokens::kSome, random);
    ENGRAM_ASSIGN_OR_RETURN(const StepResult all,
                            test::RunStep(pair.block, input));
    for (int set = 0; set < 16; ++set) {
      const WantedOutputs wanted = {(set & 1) != 0, (set & 2) != 0,
                                    (set & 4) != 0, (set & 8) != 0};
      ENGRAM_ASSIGN_OR_RETURN(const StepResult some,
                              test::RunStep(pair.block, input, wanted));
      ENGRAM_RETURN_IF_ERROR(
          Annotate(test::CompareBits(some, Part(all, wanted)),
                   absl::StrCat(StepName(input), ", output set ", set)));
    }
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareInPlace(pair.block, input, all), StepName(input)));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareBlockRows(pair.block, input, all), StepName(input)));
  }
  return absl::OkStatus();
}

absl::Status ComparePieces(const BlockPair& pair, size_t tokens,
                           const std::vector<size_t>& pieces, uint64_t seed) {
  Random random(seed);
  const StepInput input = RandomStep(pair.block, 0, StreamDtype::kBf16, tokens,
                                     DeadTokens::kSome, random);
  ENGRAM_ASSIGN_OR_RETURN(const StepResult all,
                          test::RunStep(pair.block, input));
  for (const size_t size : pieces) {
    StepResult together;
    for (size_t first = 0; first < tokens; first += size) {
      const StepInput piece = PieceOf(input, RowBytesOfToken(pair.block), first,
                                      std::min(size, tokens - first));
      ENGRAM_ASSIGN_OR_RETURN(const StepResult result,
                              test::RunStep(pair.block, piece));
      together.Append(result);
    }
    ENGRAM_RETURN_IF_ERROR(
        Annotate(test::CompareBits(together, all),
                 absl::StrCat(StepName(input), " in pieces of ", size)));
  }
  return absl::OkStatus();
}

absl::Status CompareConcurrent(const BlockPair& pair, size_t tokens,
                               size_t threads, size_t rounds, uint64_t seed) {
  Random random(seed);
  const size_t layers = pair.block.layout().layers().size();
  std::vector<StepInput> inputs;
  std::vector<StepResult> alone;
  for (size_t t = 0; t < threads; ++t) {
    inputs.push_back(RandomStep(
        pair.block, t % layers,
        t % 2 == 0 ? StreamDtype::kBf16 : StreamDtype::kF32, tokens + t,
        t % 3 == 0 ? DeadTokens::kNone : DeadTokens::kSome, random));
    ENGRAM_ASSIGN_OR_RETURN(StepResult result,
                            test::RunStep(pair.block, inputs.back()));
    alone.push_back(std::move(result));
  }
  Mutex mutex;
  absl::Status failed;
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (size_t round = 0; round < rounds; ++round) {
        const auto result = test::RunStep(pair.block, inputs[t]);
        const absl::Status status = result.ok()
                                        ? test::CompareBits(*result, alone[t])
                                        : result.status();
        MutexLock lock(&mutex);
        failed.Update(Annotate(
            status, absl::StrCat("thread ", t, ", ", StepName(inputs[t]))));
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return failed;
}

absl::Status CompareRefusals(const BlockPair& pair, uint64_t seed) {
  Random random(seed);
  const StepInput good = RandomStep(pair.block, 0, StreamDtype::kBf16, 3,
                                    DeadTokens::kSome, random);
  std::vector<std::pair<const char*, StepInput>> bad(5, {"", good});
  bad[0].first = "a layer that is not there";
  bad[0].second.layer_index = pair.block.layout().layers().size();
  bad[1].first = "rows of a token too few";
  bad[1].second.packed_rows.resize(good.packed_rows.size() -
                                   RowBytesOfToken(pair.block));
  bad[2].first = "a row too many";
  bad[2].second.packed_rows.resize(good.packed_rows.size() +
                                   pair.block.row_format().row_bytes());
  bad[3].first = "a mask of another length";
  bad[3].second.mask.push_back(1);
  bad[4].first = "streams that are cut short";
  bad[4].second.streams.pop_back();
  for (const auto& [what, input] : bad) {
    for (const EngramBlock* block : {&pair.block, &pair.reference}) {
      const absl::Status status = test::RunStep(*block, input).status();
      if (absl::IsInvalidArgument(status)) continue;
      return absl::DataLossError(absl::StrCat(
          what, " is not INVALID_ARGUMENT but: ", status.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace engram::gpu_check
