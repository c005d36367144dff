// Takes real texts through both Engram layers twice: in this process, with
// rows from the checkpoint's own files, and through table servers and a
// compute worker. Prints what each stage did and whether all bits agree.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compute/block/engram_block.h"
#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint.h"
#include "core/model/number_formats.h"
#include "core/model/token_map.h"
#include "core/rpc/address.h"
#include "deploy/local/demo_texts.h"
#include "engram_client/compute_client.h"
#include "engram_client/table_client.h"

namespace engram {
namespace {

constexpr absl::Duration kStepTimeout = absl::Minutes(2);

struct Flags {
  std::string checkpoint;
  std::string token_map;
  std::string tables;
  std::string worker;
  std::string texts;
};

// Everything the demo works with, opened once.
struct Parts {
  Checkpoint checkpoint;
  ThreadPool* pool;
  std::unique_ptr<const EngramBlock> block;
  std::unique_ptr<TableClient> tables;
  std::unique_ptr<ComputeClient> worker;
};

// One layer's buffers for one text.
struct LayerRun {
  LayerId layer;
  std::vector<RowId> row_ids;
  std::vector<std::byte> remote_rows;
  std::vector<std::byte> local_rows;
  std::vector<std::byte> streams;
  std::vector<std::byte> local_out;
  std::vector<std::byte> remote_out;
};

class Stopwatch {
 public:
  double milliseconds() const {
    return absl::ToDoubleMilliseconds(absl::Now() - start_);
  }

 private:
  absl::Time start_ = absl::Now();
};

void PrintStage(const char* stage, double milliseconds,
                const std::string& what) {
  std::printf("  %-10s %9.2f ms   %s\n", stage, milliseconds, what.c_str());
  std::fflush(stdout);
}

// bf16 streams of sizes that a residual stream has, the same in every run.
std::vector<std::byte> MadeUpStreams(const EngramConfig& config, size_t tokens,
                                     uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(tokens * config.hc_mult * config.dim * 2);
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint16_t bits = FloatToBf16(normal(random));
    std::memcpy(&bytes[i], &bits, sizeof(bits));
  }
  return bytes;
}

std::vector<LayerRun> MakeRuns(const Parts& parts, const TokenChunk& chunk) {
  const EngramConfig& config = parts.block->config();
  const size_t tokens = chunk.tokens.size();
  std::vector<LayerRun> runs;
  for (size_t i = 0; i < parts.block->layout().layers().size(); ++i) {
    LayerRun run;
    run.layer = parts.block->layout().layers()[i].layer_id;
    run.row_ids.resize(tokens * config.columns());
    const size_t row_bytes = parts.block->row_format().row_bytes();
    run.remote_rows.resize(run.row_ids.size() * row_bytes);
    run.local_rows.resize(run.row_ids.size() * row_bytes);
    run.streams = MadeUpStreams(config, tokens, ToInt(run.layer));
    run.local_out.resize(run.streams.size());
    run.remote_out.resize(run.streams.size());
    runs.push_back(std::move(run));
  }
  return runs;
}

absl::Status Hash(const Parts& parts, const TokenChunk& chunk,
                  std::vector<LayerRun>& runs) {
  ENGRAM_RETURN_IF_ERROR(parts.block->hasher().Check(chunk));
  const Stopwatch watch;
  size_t ids = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    parts.block->hasher().Hash(i, chunk, absl::MakeSpan(runs[i].row_ids));
    ids += runs[i].row_ids.size();
  }
  PrintStage("hash", watch.milliseconds(),
             absl::StrCat(chunk.tokens.size(), " tokens -> ", ids,
                          " row ids of ", runs.size(), " layers"));
  return absl::OkStatus();
}

absl::Status Fetch(const Parts& parts, std::vector<LayerRun>& runs) {
  std::vector<LayerGather> layers;
  for (LayerRun& run : runs) {
    layers.push_back({run.layer, run.row_ids, absl::MakeSpan(run.remote_rows)});
  }
  const Stopwatch watch;
  const std::unique_ptr<GatherHandle> gather = parts.tables->Prefetch(
      std::move(layers), absl::Now() + kStepTimeout, nullptr);
  ENGRAM_RETURN_IF_ERROR(gather->Wait());
  const GatherStats stats = gather->stats();
  PrintStage(
      "fetch", watch.milliseconds(),
      absl::StrCat(stats.rows, " rows, ", stats.unique_rows,
                   " of them unique, ", stats.bytes_received, " bytes in ",
                   stats.calls, " calls to ", stats.servers, " servers"));
  return absl::OkStatus();
}

absl::Status RunInProcess(const Parts& parts, const TokenChunk& chunk,
                          std::vector<LayerRun>& runs) {
  const Stopwatch watch;
  for (size_t i = 0; i < runs.size(); ++i) {
    ENGRAM_RETURN_IF_ERROR(parts.checkpoint.GatherRows(
        i, runs[i].row_ids, absl::MakeSpan(runs[i].local_rows)));
    BlockOutputs outputs;
    outputs.streams = absl::MakeSpan(runs[i].local_out);
    ENGRAM_RETURN_IF_ERROR(parts.block->Forward(i, StreamDtype::kBf16,
                                                runs[i].local_rows,
                                                runs[i].streams, {}, outputs));
  }
  const double ms = watch.milliseconds();
  PrintStage("in process", ms,
             absl::StrCat("decode, project, gate: ",
                          std::lround(static_cast<double>(runs.size() *
                                                          chunk.tokens.size()) /
                                      ms * 1000),
                          " layer steps of a token a second"));
  return absl::OkStatus();
}

absl::Status RunOnWorker(const Parts& parts, const DemoText& text,
                         std::vector<LayerRun>& runs) {
  StepSequence sequence;
  sequence.token_ids = text.token_ids;
  std::vector<LayerId> layers;
  for (const LayerRun& run : runs) layers.push_back(run.layer);
  const Stopwatch watch;
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<ComputeClient::Step> step,
      parts.worker->Begin({std::move(sequence)}, StepDtype::kBf16,
                          StepReturn::kStreams, std::move(layers),
                          {.deadline = absl::Now() + kStepTimeout}));
  size_t bytes = 0;
  for (LayerRun& run : runs) {
    StepLayerIo io;
    io.layer = run.layer;
    io.streams = run.streams;
    io.streams_out = absl::MakeSpan(run.remote_out);
    ENGRAM_RETURN_IF_ERROR(step->Layer(io));
    bytes += run.streams.size();
  }
  ENGRAM_RETURN_IF_ERROR(step->Finish());
  PrintStage("worker", watch.milliseconds(),
             absl::StrCat("Forward: fetch, project, gate; ", bytes,
                          " bytes of streams each way"));
  return absl::OkStatus();
}

// Returns whether all bits agree.
bool Compare(const std::vector<LayerRun>& runs) {
  size_t different_rows = 0;
  size_t different_streams = 0;
  size_t unchanged = 0;
  for (const LayerRun& run : runs) {
    different_rows += run.remote_rows != run.local_rows;
    different_streams += run.remote_out != run.local_out;
    unchanged += run.remote_out == run.streams;
  }
  const bool agree =
      different_rows == 0 && different_streams == 0 && unchanged == 0;
  std::printf("  compare    rows %s, streams %s%s\n",
              different_rows == 0 ? "equal to the bit" : "DIFFER",
              different_streams == 0 ? "equal to the bit" : "DIFFER",
              unchanged == 0 ? "" : "; a layer's streams DID NOT CHANGE");
  return agree;
}

absl::StatusOr<bool> RunText(const Parts& parts, const DemoText& text) {
  std::printf("\n%s\n", text.name.c_str());
  TokenChunk chunk;
  chunk.tokens = text.token_ids;
  std::vector<LayerRun> runs = MakeRuns(parts, chunk);
  ENGRAM_RETURN_IF_ERROR(Hash(parts, chunk, runs));
  ENGRAM_RETURN_IF_ERROR(Fetch(parts, runs));
  ENGRAM_RETURN_IF_ERROR(RunInProcess(parts, chunk, runs));
  ENGRAM_RETURN_IF_ERROR(RunOnWorker(parts, text, runs));
  return Compare(runs);
}

absl::StatusOr<Parts> OpenParts(const Flags& flags, ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                          Checkpoint::Open(flags.checkpoint));
  ENGRAM_ASSIGN_OR_RETURN(const TokenMap token_map,
                          TokenMap::Load(flags.token_map, checkpoint.config()));
  ENGRAM_ASSIGN_OR_RETURN(auto block,
                          EngramBlock::Create(checkpoint, token_map, pool));
  TableClient::Options table_options;
  ENGRAM_ASSIGN_OR_RETURN(table_options.addresses,
                          ParseAddressList(flags.tables));
  ENGRAM_ASSIGN_OR_RETURN(auto tables,
                          TableClient::Create(std::move(table_options)));
  ComputeClient::Options worker_options;
  ENGRAM_ASSIGN_OR_RETURN(worker_options.addresses,
                          ParseAddressList(flags.worker));
  ENGRAM_ASSIGN_OR_RETURN(auto worker,
                          ComputeClient::Create(std::move(worker_options)));
  return Parts{std::move(checkpoint), pool, std::move(block), std::move(tables),
               std::move(worker)};
}

absl::StatusOr<bool> Run(const Flags& flags) {
  ThreadPool pool(ThreadPool::Options{});
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<DemoText> texts,
                          LoadDemoTexts(flags.texts));
  ENGRAM_ASSIGN_OR_RETURN(const Parts parts, OpenParts(flags, &pool));
  bool agree = !texts.empty();
  for (const DemoText& text : texts) {
    ENGRAM_ASSIGN_OR_RETURN(const bool text_agrees, RunText(parts, text));
    agree = agree && text_agrees;
  }
  return agree;
}

}  // namespace
}  // namespace engram

int main(int argc, char** argv) {
  engram::InitLogging("engram-step-demo");
  engram::TuneMallocForLargeMessages();
  engram::Flags flags;
  CLI::App app("Runs texts through both Engram layers, locally and remotely");
  app.add_option("--checkpoint", flags.checkpoint)->required();
  app.add_option("--token-map", flags.token_map)->required();
  app.add_option("--tables", flags.tables)->required();
  app.add_option("--worker", flags.worker)->required();
  app.add_option("--texts", flags.texts)->required();
  CLI11_PARSE(app, argc, argv);

  const absl::StatusOr<bool> agree = engram::Run(flags);
  if (!agree.ok()) {
    std::fprintf(stderr, "engram-step-demo: %s\n",
                 agree.status().ToString().c_str());
    return 1;
  }
  std::printf("\n%s\n", *agree ? "ALL BITS AGREE" : "BITS DIFFER");
  return *agree ? 0 : 1;
}
