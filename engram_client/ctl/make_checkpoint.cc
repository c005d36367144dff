// engramctl make-checkpoint: a made-up checkpoint of any size, for tests,
// demos and measurements.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/checkpoint_writer.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/made_up_checkpoint.h"
#include "engram_client/ctl/staging_directory.h"

namespace engram::ctl {
namespace {

struct MakeCheckpointFlags {
  std::string preset;
  uint64_t vocab_size = 0;
  uint64_t seed = 1;
  std::string out;
  bool no_manifest = false;
  bool force = false;
  size_t threads = 0;
};

absl::Status CheckSpace(const CheckpointSize& size,
                        const StagingDirectory& staging,
                        const std::string& out) {
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t free_bytes, staging.FreeBytes());
  const std::string sums = absl::StrCat(
      WithCommas(size.rows), " rows: tables ", FormatBytes(size.table_bytes),
      " + projections ", FormatBytes(size.wkv_bytes), " + other ",
      FormatBytes(size.other_bytes), " = ", FormatBytes(size.total()), "; ",
      out, " has ", FormatBytes(free_bytes), " free");
  if (size.total() > free_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough space: ", sums));
  }
  std::fprintf(stderr, "%s\n", sums.c_str());
  return absl::OkStatus();
}

absl::Status WriteTensors(const MadeUpModel& model,
                          const StagingDirectory& staging, size_t threads,
                          const ShutdownSignal& signal) {
  ThreadPool pool({.thread_count = threads});
  const auto interrupted = [&] {
    return signal.WaitUntil(absl::InfinitePast());
  };
  uint64_t bytes = 0;
  absl::Duration elapsed;
  {
    Progress progress("make-checkpoint", stderr, Clock::Real());
    const auto show = [&](uint64_t done, uint64_t total) {
      bytes = done;
      progress.Update(done, total);
    };
    ENGRAM_RETURN_IF_ERROR(
        WriteCheckpoint(model, staging.path(), pool,
                        {.progress = show, .interrupted = interrupted}));
    elapsed = progress.elapsed();
  }
  std::fprintf(stderr, "wrote %s (%s bytes) in %.1f s, %s\n",
               FormatBytes(bytes).c_str(), WithCommas(bytes).c_str(),
               absl::ToDoubleSeconds(elapsed),
               FormatRate(bytes, elapsed).c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteManifest(StagingDirectory& staging,
                                          size_t threads,
                                          const ShutdownSignal& signal) {
  ENGRAM_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          Checkpoint::Open(staging.path()));
  Progress progress("manifest", stderr, Clock::Real());
  absl::StatusOr<Manifest> manifest = BuildManifest(
      checkpoint, {.thread_count = threads},
      [&](uint64_t done, uint64_t total) {
        progress.Update(done, total);
        if (!signal.WaitUntil(absl::InfinitePast())) return;
        // The digests cannot be stopped half-way, but nothing writes now.
        staging.Remove();
        std::fprintf(stderr, "\nengramctl: interrupted, nothing was kept\n");
        std::_Exit(kInterruptedExitCode);
      });
  ENGRAM_RETURN_IF_ERROR(manifest.status());
  ENGRAM_RETURN_IF_ERROR(manifest->Save(staging.PathOf(kManifestFileName)));
  return manifest->version();
}

absl::StatusOr<int> RunMakeCheckpoint(const MakeCheckpointFlags& flags) {
  const ShutdownSignal signal;
  ENGRAM_ASSIGN_OR_RETURN(
      const MadeUpModel model,
      MakeUpModel(flags.preset, flags.vocab_size, flags.seed));
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<StagingDirectory> staging,
      StagingDirectory::Create(
          flags.out, flags.force ? StagingDirectory::Existing::kReplace
                                 : StagingDirectory::Existing::kRefuse));
  ENGRAM_RETURN_IF_ERROR(CheckSpace(SizeOf(model), *staging, flags.out));
  const absl::Status written =
      WriteTensors(model, *staging, flags.threads, signal);
  if (absl::IsCancelled(written)) {
    std::fprintf(stderr, "engramctl: interrupted, nothing was kept\n");
    return kInterruptedExitCode;
  }
  ENGRAM_RETURN_IF_ERROR(written);
  std::string version;
  if (!flags.no_manifest) {
    ENGRAM_ASSIGN_OR_RETURN(version,
                            WriteManifest(*staging, flags.threads, signal));
  }
  // A manifest that is there already belongs to what is about to be replaced.
  ENGRAM_RETURN_IF_ERROR(staging->RemoveOld(kManifestFileName));
  ENGRAM_RETURN_IF_ERROR(staging->Publish());
  if (!version.empty()) std::printf("%s\n", version.c_str());
  return 0;
}

}  // namespace

void AddMakeCheckpoint(CLI::App& app, Action& action) {
  auto flags = std::make_shared<MakeCheckpointFlags>();
  CLI::App* command = app.add_subcommand(
      "make-checkpoint", "Write a made-up checkpoint of any size");
  command
      ->add_option(
          "--preset", flags->preset,
          "shapes: small ones for tests, or those of DeepSeek-V4.1 with "
          "short (v41-mini) or all tables")
      ->required()
      ->check(CLI::IsMember(PresetNames()));
  command
      ->add_option("--vocab-size", flags->vocab_size,
                   "engram_vocab_size, about the rows of each of a layer's "
                   "columns (default: the preset's)")
      ->check(WholeNumber(2, uint64_t{1} << 31));
  command
      ->add_option("--seed", flags->seed,
                   "the same seed gives the same bytes (default 1)")
      ->check(WholeNumber(0, UINT64_MAX));
  command->add_option("--out", flags->out, "directory to write")->required();
  command->add_flag("--no-manifest", flags->no_manifest,
                    "do not write engram_manifest.json");
  command->add_flag("--force", flags->force,
                    "write into a directory that is not empty, and replace "
                    "files of the same names");
  command
      ->add_option("--threads", flags->threads,
                   "threads that compute (0: one for each core)")
      ->check(WholeNumber(0, 1024));
  command->footer(
      "Writes config.json, engram_token_map.bin, one safetensors file a "
      "layer, their index\nand engram_manifest.json, all or nothing; prints "
      "the version id on stdout.\n\nExamples:\n"
      "  engramctl make-checkpoint --preset tiny --seed 1 --out /tmp/tiny\n"
      "  engramctl make-checkpoint --preset v41 --vocab-size 100000 --seed 1 "
      "--out /tmp/v41-short");
  command->callback([flags, &action] {
    action = [flags] { return RunMakeCheckpoint(*flags); };
  });
}

}  // namespace engram::ctl
