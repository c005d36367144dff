// engramctl manifest: reads a checkpoint once and writes its identity.

#include "core/model/manifest.h"

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint.h"
#include "engram_client/ctl/commands.h"

namespace engram::ctl {
namespace {

struct ManifestFlags {
  std::string checkpoint;
  BuildManifestOptions options;
};

absl::StatusOr<int> RunManifest(const ManifestFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          Checkpoint::Open(flags.checkpoint));
  uint64_t bytes = 0;
  absl::Duration elapsed;
  absl::StatusOr<Manifest> manifest;
  {
    Progress progress("manifest", stderr, Clock::Real());
    manifest = BuildManifest(checkpoint, flags.options,
                             [&](uint64_t done, uint64_t total) {
                               bytes = done;
                               progress.Update(done, total);
                             });
    elapsed = progress.elapsed();
  }
  ENGRAM_RETURN_IF_ERROR(manifest.status());
  const std::string path =
      absl::StrCat(flags.checkpoint, "/", kManifestFileName);
  ENGRAM_RETURN_IF_ERROR(manifest->Save(path));
  std::fprintf(stderr, "wrote %s (read %s in %.1f s, %s)\n", path.c_str(),
               FormatBytes(bytes).c_str(), absl::ToDoubleSeconds(elapsed),
               FormatRate(bytes, elapsed).c_str());
  std::printf("%s\n", manifest->version().c_str());
  return 0;
}

}  // namespace

void AddManifest(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ManifestFlags>();
  CLI::App* command = app.add_subcommand(
      "manifest",
      "Read a checkpoint, write its engram_manifest.json, print the version");
  command
      ->add_option("CHECKPOINT", flags->checkpoint,
                   "directory with config.json and safetensors files")
      ->required();
  command
      ->add_option(
          "--partition-rows", flags->options.partition_rows,
          "rows a partition, a power of two (0: 2^16, fewer in small tables)")
      ->check(WholeNumber(0, uint64_t{1} << 32));
  command->add_flag("--allow-nan", flags->options.allow_nan,
                    "take a checkpoint with NaN codes or scales");
  command
      ->add_option("--threads", flags->options.thread_count,
                   "threads that read (0: one for each core)")
      ->check(WholeNumber(0, 1024));
  command->footer(
      "The version id, alone on stdout, is the SHA-256 of the file.\n\n"
      "Example:\n  engramctl manifest /checkpoints/v41");
  command->callback(
      [flags, &action] { action = [flags] { return RunManifest(*flags); }; });
}

}  // namespace engram::ctl
