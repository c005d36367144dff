// engramctl import: fills a local store from a checkpoint, so that a server
// starts from it.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/progress.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/http/http_url.h"
#include "core/membership/member_source.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/free_bytes.h"
#include "engram_client/ctl/import_partitions.h"
#include "engram_client/ctl/table_source_flags.h"
#include "engram_client/ctl/wanted_partitions.h"
#include "table_server/loading/make_partition_source.h"
#include "table_server/loading/open_local_store.h"
#include "table_server/store/store_manifest.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kFirstLook = absl::Seconds(5);  // for the members

struct ImportFlags {
  TableSourceOptions table;
  std::string store;
  uint64_t store_gb = 0;
  std::vector<uint32_t> layers;
  std::string members;
  std::string server_name;
  uint32_t replicas = 1;
  size_t threads = 0;
  bool check = false;
};

absl::Status CheckFlags(const ImportFlags& flags) {
  if (!flags.table.manifest_path.empty() &&
      !IsHttpUrl(flags.table.checkpoint_dir)) {
    return absl::InvalidArgumentError(
        "--manifest is for a checkpoint given by its URL");
  }
  return LocalStorePlace::Parse(flags.store).status();
}

absl::StatusOr<std::vector<PartitionRef>> Wanted(const ImportFlags& flags,
                                                 const Manifest& manifest) {
  PartitionChoice choice{.server_name = flags.server_name,
                         .replicas = flags.replicas};
  for (const uint32_t layer : flags.layers) {
    choice.layers.push_back(LayerId{layer});
  }
  if (!flags.members.empty()) {
    auto source = MemberSource::Parse(flags.members);
    if (!source.ok()) return Annotate(source.status(), "--members");
    auto members = (*source)->Read(absl::Now() + kFirstLook);
    if (!members.ok()) return Annotate(members.status(), "--members");
    choice.members = *std::move(members);
  }
  return WantedPartitions(manifest, choice);
}

// With a progress line, until it is told to end.
absl::StatusOr<ImportResult> Fill(const ImportFlags& flags,
                                  const TableSource& source, LocalStore& store,
                                  absl::Span<const PartitionRef> refs,
                                  ShutdownSignal& signal,
                                  absl::Duration& elapsed) {
  const std::unique_ptr<PartitionSource> partitions =
      MakePartitionSource(source);
  Progress progress("import", stderr, Clock::Real());
  const auto result = ImportPartitions(
      source.manifest, *partitions, store, refs,
      {.threads = flags.threads > 0 ? flags.threads : LoadThreads(),
       .progress = [&](uint64_t done,
                       uint64_t total) { progress.Update(done, total); },
       .interrupted = [&] { return EndsAtTheNext(signal); }});
  elapsed = progress.elapsed();
  return result;
}

int Interrupted(const ShutdownSignal& signal, const std::string& what) {
  std::fprintf(stderr,
               "engramctl: interrupted: %s; the same command goes on from "
               "there\n",
               what.c_str());
  return ExitCodeOf(signal);
}

absl::StatusOr<int> ImportInto(const ImportFlags& flags,
                               const TableSource& source,
                               const LocalStorePlace& place, LocalStore& store,
                               const std::vector<PartitionRef>& wanted,
                               ShutdownSignal& signal) {
  const std::vector<PartitionRef> missing = MissingIn(store, wanted);
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytesIn(place.dir));
  ENGRAM_RETURN_IF_ERROR(
      CheckRoom(store, missing, flags.store_gb * 1'000'000'000, free_bytes));
  // A store does without it where it must; verify does not.
  ENGRAM_RETURN_IF_ERROR(KeepManifest(place.manifests(), source.manifest));
  absl::Duration elapsed;
  const auto result = Fill(flags, source, store, flags.check ? wanted : missing,
                           signal, elapsed);
  const size_t there = wanted.size() - MissingIn(store, wanted).size();
  const std::string sums =
      absl::StrCat(WithCommas(there), " of ", WithCommas(wanted.size()),
                   " partitions are in ", store.description());
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat(result.status().message(), "; ", sums,
                                     ", another import goes on from there"));
  }
  if (result->looked_at.interrupted) return Interrupted(signal, sums);
  std::fprintf(stderr,
               "%s: %s (%s) imported in %.1f s, %s; %s were there before%s\n",
               sums.c_str(), WithCommas(result->imported).c_str(),
               FormatBytes(result->imported_bytes).c_str(),
               absl::ToDoubleSeconds(elapsed),
               FormatRate(result->looked_at.bytes, elapsed).c_str(),
               WithCommas(wanted.size() - missing.size()).c_str(),
               flags.check ? absl::StrCat(", ", WithCommas(result->replaced),
                                          " of them damaged and replaced")
                                 .c_str()
                           : "");
  std::printf("%s\n", source.manifest.version().c_str());
  return 0;
}

int WrongUsage(const absl::Status& status) {
  std::fprintf(stderr, "engramctl: %s\n",
               std::string(status.message()).c_str());
  return kWrongUsage;
}

absl::StatusOr<int> RunImport(ImportFlags flags) {
  if (const absl::Status usage = CheckFlags(flags); !usage.ok()) {
    return WrongUsage(usage);
  }
  ShutdownSignal signal;
  EndOpeningAt(signal, flags.table);
  const absl::StatusOr<TableSource> source = OpenTableSource(flags.table);
  if (absl::IsCancelled(source.status())) {
    return Interrupted(signal, "nothing was imported yet");
  }
  ENGRAM_RETURN_IF_ERROR(source.status());
  const absl::StatusOr<std::vector<PartitionRef>> wanted =
      Wanted(flags, source->manifest);
  if (absl::IsInvalidArgument(wanted.status())) {
    return WrongUsage(wanted.status());
  }
  ENGRAM_RETURN_IF_ERROR(wanted.status());
  ENGRAM_ASSIGN_OR_RETURN(const LocalStorePlace place,
                          LocalStorePlace::Parse(flags.store));
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalStore> store,
      OpenLocalStore(source->manifest, place,
                     {.max_store_bytes = flags.store_gb * 1'000'000'000}));
  return ImportInto(flags, *source, place, *store, *wanted, signal);
}

constexpr char kFooter[] =
    R"(Each partition is read, compared with the manifest and put into the store, which
keeps the manifest too; those that are there already are skipped, unread unless
--check is given. Whenever it is ended, by whatever, each partition is in the
store or it is not: run it again to go on. A store that a server uses is refused.
With --members, --server-name, --replicas and --layers as a table server has them:
only what that server owns.
Prints the table version on stdout.

Exit code: 0 done, 1 failed, 2 wrong usage, 130 or 143 interrupted.

Examples:
  engramctl import --checkpoint /models/v4.1 --store flat:/nvme/engram
  engramctl import --checkpoint https://models.example/v4.1 \
    --token-file /run/secrets/token --store flat:/nvme/engram \
    --members file:/etc/engram/members --server-name engram-table-0 --replicas 2)";

void AddChoice(CLI::App& command, ImportFlags& flags) {
  command
      .add_option("--layers", flags.layers,
                  "only these layers, separated by commas")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  CLI::Option* name = command.add_option("--server-name", flags.server_name,
                                         "the server's name among the members");
  command
      .add_option("--members", flags.members,
                  "static:NAME=ADDRESS,..., file:PATH or dns:NAME[@IP:PORT]: "
                  "only what --server-name owns among them")
      ->needs(name);
  command
      .add_option("--replicas", flags.replicas,
                  "owners of a partition (default 1)")
      ->check(WholeNumber(1, 4096));
}

}  // namespace

void AddImport(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand(
      "import", "Fill a local store of a table server from a checkpoint");
  AddCheckpointFlags(*command, flags->table)->required();
  command->add_option("--manifest", flags->table.manifest_path,
                      "engram_manifest.json of a checkpoint by URL where none "
                      "lies beside it");
  command->add_option("--store", flags->store, "flat:DIR or rocksdb:DIR")
      ->required();
  command
      ->add_option("--store-gb", flags->store_gb,
                   "what DIR may take, other table versions too, in GB (0: no "
                   "limit)")
      ->check(WholeNumber(0, 1 << 20));
  AddChoice(*command, *flags);
  command
      ->add_option("--threads", flags->threads,
                   "partitions read and written at once, each in memory (0: "
                   "one for each core, at least 8)")
      ->check(WholeNumber(0, 1024));
  command->add_flag("--check", flags->check,
                    "read what is there too, and import anew what is damaged "
                    "or cannot be read");
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunImport(*flags); }; });
}

}  // namespace engram::ctl
