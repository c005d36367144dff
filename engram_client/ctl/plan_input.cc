#include "engram_client/ctl/plan_input.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "engram_client/ctl/cluster_views.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

TableInfo::Layer ToLayer(LayerId id, uint64_t rows, uint64_t partition_rows) {
  return {id, rows, static_cast<uint32_t>((rows - 1) / partition_rows + 1)};
}

std::vector<PlacementMember>::iterator Find(
    std::vector<PlacementMember>& members, absl::string_view name) {
  return std::find_if(members.begin(), members.end(),
                      [&](const auto& member) { return member.name == name; });
}

std::vector<std::string> NamesOf(const std::vector<PlacementMember>& members) {
  std::vector<std::string> names;
  for (const PlacementMember& member : members) names.push_back(member.name);
  return names;
}

std::string LayersOf(const TableInfo& table) {
  return absl::StrJoin(table.layers, ", ",
                       [](std::string* out, const TableInfo::Layer& layer) {
                         absl::StrAppend(out, ToInt(layer.layer_id));
                       });
}

// "a,b"; empty: none.
std::vector<std::string> SplitNames(absl::string_view names) {
  if (names.empty()) return {};
  return absl::StrSplit(names, ',');
}

absl::Status NobodyToAsk(absl::Span<const ServerProbe> servers) {
  bool some_answered = false;
  bool some_know = false;
  for (const ServerProbe& server : servers) {
    some_answered = some_answered || server.error.empty();
    some_know = some_know || server.exchange.has_value();
  }
  if (!some_answered) {
    return absl::UnavailableError(absl::StrCat(
        "no table server answered: ",
        servers.empty() ? "none was asked"
                        : absl::StrCat(servers[0].address, ": ",
                                       Printable(servers[0].error))));
  }
  if (!some_know) {
    return absl::UnimplementedError(
        "the servers are of a release that does not tell who its members are: "
        "give them with --from");
  }
  return absl::FailedPreconditionError(
      "no server has a view of the cluster yet: `engramctl status` says what "
      "they wait for");
}

}  // namespace

PlannedTable TableOfManifest(const Manifest& manifest) {
  PlannedTable table{.name = manifest.table()};
  table.info.version = manifest.version();
  table.info.config = manifest.config();
  table.info.row_format = manifest.row_format();
  table.info.partition_rows = manifest.partition_rows();
  for (const ManifestLayer& layer : manifest.layers()) {
    table.info.layers.push_back(
        ToLayer(layer.layer_id, layer.row_count, manifest.partition_rows()));
  }
  return table;
}

absl::StatusOr<PlannedTable> TableOfPreset(absl::string_view preset) {
  PlannedTable table;
  TableInfo& info = table.info;
  ENGRAM_ASSIGN_OR_RETURN(info.config, PresetConfig(preset));
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(info.config));
  info.row_format.width = info.config.head_dim;
  std::vector<uint64_t> rows;
  for (const LayerLayout& layer : layout.layers()) {
    rows.push_back(layer.row_count);
  }
  info.partition_rows = DefaultPartitionRows(rows);
  for (const LayerLayout& layer : layout.layers()) {
    info.layers.push_back(
        ToLayer(layer.layer_id, layer.row_count, info.partition_rows));
  }
  return table;
}

absl::Status KeepLayers(absl::string_view layers, TableInfo& table) {
  std::vector<TableInfo::Layer> kept;
  for (const std::string& text : SplitNames(layers)) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(text, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer \"", text, "\" is not a number"));
    }
    const auto layer = std::find_if(
        table.layers.begin(), table.layers.end(),
        [id](const auto& other) { return ToInt(other.layer_id) == id; });
    if (layer == table.layers.end()) {
      return absl::NotFoundError(absl::StrCat(
          "layer ", id, " is not in this table, which has ", LayersOf(table)));
    }
    kept.push_back(*layer);
  }
  if (!kept.empty()) table.layers = std::move(kept);
  return absl::OkStatus();
}

std::vector<PlacementMember> ToPlacement(absl::Span<const Member> members) {
  std::vector<PlacementMember> placed;
  for (const Member& member : members) {
    placed.push_back({member.name, member.capacity});
  }
  return placed;
}

absl::StatusOr<std::vector<PlacementMember>> ChangeMembers(
    std::vector<PlacementMember> members, absl::string_view add,
    absl::string_view remove) {
  for (const std::string& name : SplitNames(remove)) {
    const auto member = Find(members, name);
    if (member == members.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--remove ", name, ": the members are ",
                       JoinNames(NamesOf(members))));
    }
    members.erase(member);
  }
  for (const std::string& name : SplitNames(add)) {
    ENGRAM_RETURN_IF_ERROR(CheckServerName(name));
    if (Find(members, name) != members.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--add ", name, ": it is a member already"));
    }
    members.push_back({name});
  }
  return members;
}

absl::StatusOr<PresentCluster> PresentOf(
    absl::Span<const ServerProbe> servers) {
  const std::vector<SeenView> views = ViewsOf(servers);
  if (views.empty()) return NobodyToAsk(servers);
  PresentCluster present;
  present.ownership = {ToPlacement(views[0].members), views[0].replicas};
  std::set<std::string> versions;
  uint64_t to_load = 0;
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value()) continue;
    versions.insert(server.version);
    to_load += server.exchange->moves().to_load();
    if (present.address.empty() &&
        server.exchange->view_digest() == views[0].digest) {
      present.address = server.address;
    }
  }
  if (versions.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the servers serve ", versions.size(), " different tables"));
  }
  if (views.size() > 1) {
    present.notes.push_back(absl::StrCat(ViewDifferences(views),
                                         "; planned from that of ",
                                         JoinNames(views[0].servers)));
  }
  if (to_load > 0) {
    present.notes.push_back(absl::StrCat(
        "another change is under way, with ", WithCommas(to_load),
        " partitions still to load: what is owned counts here, not what is "
        "held"));
  }
  return present;
}

std::vector<std::string> OwnedOtherwise(absl::Span<const ServerProbe> servers,
                                        const MovePlan& plan) {
  std::vector<std::string> notes;
  for (const MemberMoves& member : plan.members) {
    for (const ServerProbe& server : servers) {
      if (!server.exchange.has_value() || server.name != member.name) continue;
      const uint64_t owned = server.exchange->moves().owned();
      if (owned == member.now.owned.partitions) continue;
      notes.push_back(absl::StrCat(
          Printable(member.name), " says that it owns ", WithCommas(owned),
          " partitions, the plan gives it ",
          WithCommas(member.now.owned.partitions),
          ": its view is another, or it serves only some layers (--layers)"));
    }
  }
  return notes;
}

}  // namespace engram::ctl
