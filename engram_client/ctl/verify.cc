// engramctl verify: a checkpoint, or a local store, against its manifest.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "core/http/http_url.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/table_source_flags.h"
#include "engram_client/ctl/verify_partitions.h"
#include "engram_client/ctl/verify_report.h"
#include "engram_client/ctl/wanted_partitions.h"
#include "table_server/loading/make_partition_source.h"
#include "table_server/loading/open_local_store.h"
#include "table_server/store/store_manifest.h"

namespace engram::ctl {
namespace {

struct VerifyFlags {
  TableSourceOptions table;
  std::string store;
  std::string version;
  std::vector<uint32_t> layers;
  size_t threads = 0;
  bool json = false;
};

absl::Status CheckFlags(const VerifyFlags& flags) {
  if (flags.store.empty() && flags.table.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError(
        "nothing to verify: give --checkpoint or --store");
  }
  if (!flags.store.empty()) return LocalStorePlace::Parse(flags.store).status();
  if (!flags.version.empty()) {
    return absl::InvalidArgumentError("--table-version needs --store");
  }
  if (!flags.table.manifest_path.empty() &&
      !IsHttpUrl(flags.table.checkpoint_dir)) {
    return absl::InvalidArgumentError(
        "--manifest is for a store, or a checkpoint given by its URL");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PartitionRef>> Expected(const VerifyFlags& flags,
                                                   const Manifest& manifest) {
  if (manifest.source() != "checkpoint") {
    return absl::FailedPreconditionError(
        absl::StrCat("the manifest is of a table with source ",
                     manifest.source(), " and has no digests"));
  }
  PartitionChoice choice;
  for (const uint32_t layer : flags.layers) {
    choice.layers.push_back(LayerId{layer});
  }
  return WantedPartitions(manifest, choice);
}

size_t Threads(const VerifyFlags& flags) {
  return flags.threads > 0 ? flags.threads : LoadThreads();
}

void Look(const Manifest& manifest, const VerifiedPlace& place,
          absl::Span<const PartitionRef> refs, size_t threads,
          ShutdownSignal& signal, VerifyReport& report) {
  Progress progress("verify", stderr, Clock::Real());
  report.version = manifest.version();
  report.asked = refs.size();
  report.result = VerifyPartitions(
      manifest, place, refs,
      {.threads = threads,
       .progress = [&](uint64_t done,
                       uint64_t total) { progress.Update(done, total); },
       .interrupted = [&] { return EndsAtTheNext(signal); }});
  report.elapsed = progress.elapsed();
}

absl::StatusOr<VerifyReport> VerifyCheckpoint(const VerifyFlags& flags,
                                              ShutdownSignal& signal) {
  ENGRAM_ASSIGN_OR_RETURN(const TableSource source,
                          OpenTableSource(flags.table));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<PartitionRef> expected,
                          Expected(flags, source.manifest));
  const std::unique_ptr<PartitionSource> partitions =
      MakePartitionSource(source);
  VerifyReport report{
      .where = absl::StrCat("checkpoint ", partitions->description()),
      .expected = expected.size()};
  Look(source.manifest, PlaceOfCheckpoint(source, *partitions), expected,
       Threads(flags), signal, report);
  return report;
}

absl::StatusOr<Manifest> ManifestOfStore(const VerifyFlags& flags,
                                         const LocalStorePlace& place) {
  if (!flags.table.checkpoint_dir.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(TableSource source, OpenTableSource(flags.table));
    return std::move(source.manifest);
  }
  if (!flags.table.manifest_path.empty()) {
    return Manifest::Load(flags.table.manifest_path);
  }
  absl::StatusOr<Manifest> kept =
      LoadKeptManifest(place.manifests(), flags.version);
  if (absl::IsInvalidArgument(kept.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(kept.status().message(), " (--table-version)"));
  }
  if (kept.ok()) return kept;
  return absl::Status(
      kept.status().code(),
      absl::StrCat(kept.status().message(),
                   "; --checkpoint or --manifest gives another one"));
}

absl::StatusOr<VerifyReport> VerifyStore(const VerifyFlags& flags,
                                         ShutdownSignal& signal) {
  ENGRAM_ASSIGN_OR_RETURN(const LocalStorePlace place,
                          LocalStorePlace::Parse(flags.store));
  ENGRAM_ASSIGN_OR_RETURN(const Manifest manifest,
                          ManifestOfStore(flags, place));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<PartitionRef> expected,
                          Expected(flags, manifest));
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStore> store,
                          OpenLocalStoreToRead(manifest, place));
  std::vector<PartitionRef> there = expected;
  std::erase_if(there,
                [&](const PartitionRef& ref) { return !store->Has(ref); });
  if (there.empty()) {
    return absl::NotFoundError(absl::StrCat(
        store->description(), " has no partitions of table version ",
        manifest.version()));
  }
  VerifyReport report{.where = store->description(),
                      .expected = expected.size()};
  Look(manifest, PlaceOfStore(*store), there, Threads(flags), signal, report);
  return report;
}

absl::StatusOr<int> RunVerify(VerifyFlags flags) {
  absl::Status failed = CheckFlags(flags);
  ShutdownSignal signal;
  EndOpeningAt(signal, flags.table);
  absl::StatusOr<VerifyReport> report;
  if (failed.ok()) {
    report = flags.store.empty() ? VerifyCheckpoint(flags, signal)
                                 : VerifyStore(flags, signal);
    failed = report.status();
  }
  if (!failed.ok()) {
    std::fprintf(stderr, "engramctl: %s\n",
                 std::string(failed.message()).c_str());
    return absl::IsCancelled(failed) ? ExitCodeOf(signal) : kCannotVerify;
  }
  const std::string text =
      flags.json ? VerifyAsJson(*report) : VerifyAsText(*report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report->result.looked_at.interrupted ? ExitCodeOf(signal)
                                              : ExitCodeOf(*report);
}

constexpr char kFooter[] =
    R"(Reads every partition, of the checkpoint or of those that the store has, and
compares it with its digest in the manifest: the checkpoint's, or the one that the
store keeps, or that of --checkpoint or --manifest. Changes nothing: a store is not
repaired, and one that a server uses is refused. The JSON is described in
engram_client/ctl/verify_report.cc.

Exit code: 0 all sound, 1 damage found, 2 wrong usage, or something could not be
read; 130 or 143 interrupted.

Examples:
  engramctl verify --checkpoint /models/v4.1
  engramctl verify --store flat:/nvme/engram
  engramctl verify --store rocksdb:/nvme/engram --table-version 3f8a22c1 --json)";

}  // namespace

void AddVerify(CLI::App& app, Action& action) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand(
      kVerifyCommand,
      "Compare a checkpoint or a local store with its manifest");
  CLI::Option* checkpoint = AddCheckpointFlags(*command, flags->table);
  CLI::Option* manifest =
      command->add_option("--manifest", flags->table.manifest_path,
                          "engram_manifest.json of a store without "
                          "--checkpoint, or of a checkpoint by URL where none "
                          "lies beside it");
  command->add_option("--store", flags->store, "flat:DIR or rocksdb:DIR");
  command
      ->add_option("--table-version", flags->version,
                   "the version meant, or its first digits, where DIR has "
                   "several")
      ->excludes(checkpoint)
      ->excludes(manifest);
  command
      ->add_option("--layers", flags->layers,
                   "only these layers, separated by commas")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  command
      ->add_option("--threads", flags->threads,
                   "partitions read at once, each in memory (0: one for each "
                   "core, at least 8)")
      ->check(WholeNumber(0, 1024));
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunVerify(*flags); }; });
}

}  // namespace engram::ctl
