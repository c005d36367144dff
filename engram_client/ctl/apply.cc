// engramctl apply: the Engram step on compute workers, from file to file.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors.h"
#include "core/rpc/address.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/apply_tensors.h"
#include "engram_client/ctl/chunks.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/token_batch.h"

namespace engram::ctl {
namespace {

struct ApplyFlags {
  std::string workers;
  std::string in;
  std::string out;
  std::string mode = "apply";
  std::string what = "streams";
  std::string chunks;
  double timeout_seconds = 60;

  StepReturn Returned() const {
    return what == "streams" ? StepReturn::kStreams : StepReturn::kContribution;
  }
};

// Layers one after another, as a transformer would have their streams.
absl::Status RunForward(ComputeClient& client, const ApplyFlags& flags,
                        std::vector<StepSequence> sequences, StepDtype dtype,
                        const std::vector<StepLayerIo>& ios,
                        absl::Time deadline) {
  std::vector<LayerId> layers;
  for (const StepLayerIo& io : ios) layers.push_back(io.layer);
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<ComputeClient::Step> step,
      client.Begin(std::move(sequences), dtype, flags.Returned(), layers,
                   {.deadline = deadline}));
  for (const StepLayerIo& io : ios) {
    ENGRAM_RETURN_IF_ERROR(step->Layer(io));
  }
  return step->Finish();
}

// One step: `chunk` of every sequence, all layers.
absl::Status RunChunk(ComputeClient& client, const ApplyFlags& flags,
                      const ApplyInput& input, const Chunk& chunk,
                      std::vector<LayerBuffers>& results) {
  std::vector<StepSequence> sequences;
  for (uint64_t s = 0; s < input.tokens.sequences; ++s) {
    sequences.push_back(SequenceOf(input.tokens, s, chunk,
                                   client.model().config.max_lookback()));
  }
  std::vector<std::vector<std::byte>> streams(input.layers.size());
  std::vector<LayerBuffers> step_results;
  std::vector<StepLayerIo> ios;
  for (size_t i = 0; i < input.layers.size(); ++i) {
    ENGRAM_ASSIGN_OR_RETURN(streams[i],
                            ChunkOf(input.layers[i].streams, chunk));
    step_results.push_back(MakeBuffers(client.model(), input.dtype,
                                       flags.Returned(),
                                       input.tokens.sequences * chunk.count));
    LayerBuffers& result = step_results.back();
    ios.push_back({.layer = input.layers[i].layer,
                   .streams = streams[i],
                   .streams_out = absl::MakeSpan(result.streams),
                   .gate = absl::MakeSpan(result.gate),
                   .value = absl::MakeSpan(result.value)});
  }
  const absl::Time deadline =
      absl::Now() + absl::Seconds(flags.timeout_seconds);
  ENGRAM_RETURN_IF_ERROR(flags.mode == "apply"
                             ? client.Apply(sequences, input.dtype,
                                            flags.Returned(), ios, deadline)
                             : RunForward(client, flags, std::move(sequences),
                                          input.dtype, ios, deadline));
  for (size_t i = 0; i < results.size(); ++i) {
    PlaceChunk(step_results[i], input.tokens, chunk, results[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckFits(const std::vector<Chunk>& chunks, uint64_t sequences,
                       uint64_t max_tokens_per_step) {
  for (const Chunk& chunk : chunks) {
    if (chunk.count * sequences <= max_tokens_per_step) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", chunk.count, " tokens of ", sequences,
                     " sequences, but the workers take ", max_tokens_per_step,
                     " tokens a step: give smaller --chunks"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunApply(const ApplyFlags& flags) {
  ComputeClient::Options options;
  options.connect_timeout = absl::Seconds(flags.timeout_seconds);
  ENGRAM_ASSIGN_OR_RETURN(options.addresses, ParseAddressList(flags.workers));
  ENGRAM_ASSIGN_OR_RETURN(const SafetensorsFile file,
                          SafetensorsFile::Open(flags.in));
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<ComputeClient> client,
                          ComputeClient::Create(std::move(options)));
  const absl::StatusOr<ApplyInput> input =
      ReadApplyInput(file, client->model());
  if (!input.ok()) return Annotate(input.status(), flags.in);
  const TokenBatch& batch = input->tokens;
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<Chunk> chunks,
                          ParseChunks(flags.chunks, batch.length));
  ENGRAM_RETURN_IF_ERROR(
      CheckFits(chunks, batch.sequences, client->model().max_tokens_per_step));

  std::vector<LayerBuffers> results;
  for (size_t i = 0; i < input->layers.size(); ++i) {
    results.push_back(MakeBuffers(client->model(), input->dtype,
                                  flags.Returned(),
                                  batch.sequences * batch.length));
  }
  const absl::Time start = absl::Now();
  for (const Chunk& chunk : chunks) {
    ENGRAM_RETURN_IF_ERROR(
        Annotate(RunChunk(*client, flags, *input, chunk, results),
                 absl::StrCat("positions ", chunk.start, " to ",
                              chunk.start + chunk.count - 1)));
  }
  const absl::Duration elapsed = absl::Now() - start;
  ENGRAM_RETURN_IF_ERROR(WriteResults(flags.out, client->model(), *input,
                                      flags.Returned(), results));
  std::printf("%zu tokens, %zu layers, %zu steps of table %s, %.1f ms\n",
              batch.tokens.size(), results.size(), chunks.size(),
              ShortVersion(client->model().version).c_str(),
              absl::ToDoubleMilliseconds(elapsed));
  return 0;
}

}  // namespace

void AddApply(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ApplyFlags>();
  CLI::App* command =
      app.add_subcommand("apply", "Run the Engram step on compute workers");
  command
      ->add_option("--worker", flags->workers, "addresses of compute workers")
      ->required();
  command
      ->add_option("--in", flags->in,
                   "tokens I64 [B, T], mask BOOL (optional), "
                   "layers.N.streams_in BF16 or F32 [B, T, hc, dim]")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "layers.N.streams_out, or layers.N.gate and layers.N.value")
      ->required();
  command
      ->add_option("--mode", flags->mode,
                   "apply (one call a step, default) or forward (a stream)")
      ->check(CLI::IsMember({"apply", "forward"}));
  command
      ->add_option("--return", flags->what,
                   "streams (default) or contribution (gate and value)")
      ->check(CLI::IsMember({"streams", "contribution"}));
  command->add_option("--chunks", flags->chunks,
                      "run the sequences in steps of a,b,c tokens (default: "
                      "one step)");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "to connect, and for each step (default 60)")
      ->check(Seconds(0.001, 86400));
  command->footer(
      "Examples:\n  engramctl apply --worker 127.0.0.1:7100 --in "
      "in.safetensors --out out.safetensors\n  engramctl apply --worker "
      "unix:/run/engram/worker.sock --mode forward --return contribution \\\n"
      "    --chunks 100,1,1 --in in.safetensors --out out.safetensors");
  command->callback(
      [flags, &action] { action = [flags] { return RunApply(*flags); }; });
}

}  // namespace engram::ctl
