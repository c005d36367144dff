// engramctl plan: what a change of members moves, before it is made.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/membership/member_source.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/plan_input.h"
#include "engram_client/ctl/plan_moves.h"
#include "engram_client/ctl/plan_report.h"
#include "engram_client/ctl/status_probe.h"
#include "engram_client/ctl/table_addresses.h"
#include "engram_client/ctl/table_calls.h"
#include "engram_client/rpc/table_identity.h"

namespace engram::ctl {
namespace {

struct PlanFlags {
  std::string tables;
  std::string from;
  uint32_t from_replicas = 1;
  std::string checkpoint;
  std::string preset;
  std::string layers;
  std::string members;
  std::string add;
  std::string remove;
  uint32_t replicas = 0;  // 0: as now
  bool json = false;
  double timeout_seconds = 5;

  absl::Time deadline() const {
    return absl::Now() + absl::Seconds(timeout_seconds);
  }
};

// What is there before the change.
struct Present {
  PlannedTable table;
  Ownership ownership;
  std::vector<ServerProbe> servers;
  std::vector<std::string> notes;
};

absl::StatusOr<std::vector<PlacementMember>> ReadMembers(
    const std::string& flag, const std::string& spec, absl::Time deadline) {
  absl::StatusOr<std::unique_ptr<MemberSource>> source =
      MemberSource::Parse(spec);
  if (!source.ok()) return Annotate(source.status(), flag);
  const absl::StatusOr<std::vector<Member>> members = (*source)->Read(deadline);
  if (!members.ok()) return Annotate(members.status(), flag);
  return ToPlacement(*members);
}

absl::StatusOr<PlannedTable> GivenTable(const PlanFlags& flags) {
  if (!flags.preset.empty()) return TableOfPreset(flags.preset);
  ENGRAM_ASSIGN_OR_RETURN(
      const Manifest manifest,
      Manifest::Load(absl::StrCat(flags.checkpoint, "/", kManifestFileName)));
  return TableOfManifest(manifest);
}

absl::StatusOr<Present> AskServers(const PlanFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                          TableAddresses(flags.tables, flags.deadline()));
  Present present;
  present.servers =
      ProbeCluster(addresses, absl::Seconds(flags.timeout_seconds), {});
  ENGRAM_ASSIGN_OR_RETURN(PresentCluster cluster, PresentOf(present.servers));
  present.ownership = std::move(cluster.ownership);
  present.notes = std::move(cluster.notes);
  ENGRAM_ASSIGN_OR_RETURN(
      const v1::GetTableResponse table,
      TableCalls(cluster.address).GetTable(flags.deadline()));
  absl::StatusOr<TableInfo> info = ParseTableInfo(table);
  if (!info.ok()) return Annotate(info.status(), cluster.address);
  present.table.info = *std::move(info);
  return present;
}

absl::StatusOr<Present> ReadPresent(const PlanFlags& flags) {
  if (!flags.tables.empty()) return AskServers(flags);
  Present present;
  ENGRAM_ASSIGN_OR_RETURN(present.table, GivenTable(flags));
  ENGRAM_ASSIGN_OR_RETURN(present.ownership.members,
                          ReadMembers("--from", flags.from, flags.deadline()));
  present.ownership.replicas = flags.from_replicas;
  return present;
}

absl::StatusOr<Ownership> ReadThen(const PlanFlags& flags,
                                   const Ownership& now) {
  Ownership then = now;
  if (flags.replicas > 0) then.replicas = flags.replicas;
  if (!flags.members.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(
        then.members,
        ReadMembers("--members", flags.members, flags.deadline()));
  }
  ENGRAM_ASSIGN_OR_RETURN(then.members, ChangeMembers(std::move(then.members),
                                                      flags.add, flags.remove));
  return then;
}

absl::Status CheckFlags(const PlanFlags& flags) {
  if (flags.from.empty() == flags.tables.empty()) {
    return absl::InvalidArgumentError(
        "give the members now: one of --tables and --from");
  }
  const bool table_given = !flags.checkpoint.empty() || !flags.preset.empty();
  if (!flags.from.empty() && !table_given) {
    return absl::InvalidArgumentError(
        "--from needs a table: one of --checkpoint and --preset");
  }
  if (flags.members.empty() && flags.add.empty() && flags.remove.empty() &&
      flags.replicas == 0) {
    return absl::InvalidArgumentError(
        "nothing changes: give --members, --add, --remove or --replicas");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunPlan(const PlanFlags& flags) {
  if (const absl::Status usage = CheckFlags(flags); !usage.ok()) {
    std::fprintf(stderr, "engramctl: %s\n",
                 std::string(usage.message()).c_str());
    return kWrongUsage;
  }
  ENGRAM_ASSIGN_OR_RETURN(Present present, ReadPresent(flags));
  ENGRAM_RETURN_IF_ERROR(KeepLayers(flags.layers, present.table.info));
  ENGRAM_ASSIGN_OR_RETURN(const Ownership then,
                          ReadThen(flags, present.ownership));
  PlanReport report{.version = present.table.info.version,
                    .notes = std::move(present.notes)};
  ENGRAM_ASSIGN_OR_RETURN(report.plan,
                          PlanMoves(present.table.info, present.table.name,
                                    present.ownership, then));
  for (std::string& note : OwnedOtherwise(present.servers, report.plan)) {
    report.notes.push_back(std::move(note));
  }
  if (then.replicas > then.members.size()) {
    report.notes.push_back(
        absl::StrCat("replicas ", then.replicas, " of ", then.members.size(),
                     " members: each would hold the whole table"));
  }
  const std::string text = flags.json ? PlanAsJson(report) : PlanAsText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

constexpr char kFooter[] =
    R"(Changes nothing. The members now are those that the servers at --tables see, or
those of --from, with the table of --checkpoint or --preset. The members then are
those of --members, or those now, with --add and without --remove. A member list
is static:NAME=ADDRESS,..., file:PATH or dns:NAME[@IP:PORT].

RECEIVES: partitions that a member loads, from its peers or the checkpoint. PEAK:
bytes of rows at the worst moment: a member gives nothing up before the new owners
have it. The least possible is what any way to the same numbers of partitions
would move. The JSON is described in engram_client/ctl/plan_report.cc.

Examples:
  engramctl plan --tables 127.0.0.1:7001 --add engram-table-3
  engramctl plan --tables file:members --members file:new-members
  engramctl plan --preset v41 --from file:members --from-replicas 2 \
    --remove engram-table-2 --json)";

void AddPresentOptions(CLI::App& command, PlanFlags& flags) {
  CLI::Option* tables =
      command.add_option("--tables", flags.tables, kTablesHelp);
  CLI::Option* from =
      command.add_option("--from", flags.from, "the members now")
          ->excludes(tables);
  command
      .add_option("--from-replicas", flags.from_replicas,
                  "owners of a partition now (default 1)")
      ->needs(from)
      ->check(WholeNumber(1, 4096));
  CLI::Option* checkpoint =
      command
          .add_option("--checkpoint", flags.checkpoint,
                      "directory with the table's engram_manifest.json")
          ->excludes(tables);
  command.add_option("--preset", flags.preset, "shapes of the table")
      ->check(CLI::IsMember(PresetNames()))
      ->excludes(tables)
      ->excludes(checkpoint);
  command.add_option("--layers", flags.layers,
                     "layers that the servers serve (default: all)");
}

}  // namespace

void AddPlan(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "What a change of members or replicas would move");
  AddPresentOptions(*command, *flags);
  command->add_option("--members", flags->members, "the members then");
  command->add_option("--add", flags->add,
                      "names of servers that join, separated by commas");
  command->add_option("--remove", flags->remove, "names of servers that leave");
  command
      ->add_option("--replicas", flags->replicas,
                   "owners of a partition then (default: as now)")
      ->check(WholeNumber(1, 4096));
  command->add_flag("--json", flags->json, "print JSON");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "for each round of answers (default 5)")
      ->check(Seconds(0.001, 86400));
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunPlan(*flags); }; });
}

}  // namespace engram::ctl
