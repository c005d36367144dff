// The JSON of `engramctl status`, format "engram-status/1". With --watch a line
// for each look. Versions and digests in full; names may be anything.
//
//   time_unix_ms
//   servers[]         address, state (StateOf in probes.h), found (not asked
//                     for, a member by what the others say), name (null:
//                     nobody knows)
//     heard_by[], not_heard_by[]   of the servers that see it as a member
//     error             of those that did not answer, which have no more
//     version, partitions_held
//     view_digest       null: it has no view yet     (these and the next: not
//     replicas, leaving                              of older releases)
//     moves             partitions: owned, to_load (with those loading),
//                       loading, to_free, lingering; to_load_bytes,
//                       memory_bytes; since the start: loaded_bytes,
//                       failed_loads; waiting_for; load_bytes_per_second
//                       (null: not known, needs --watch)
//   views[]           digest, replicas, members[] (name, address, capacity),
//                     seen_by[]; that of most servers first
//   tables[]          version, layers[]: layer_id, partitions,
//                     partitions_held_by[n]: how many n servers hold
//   workers[]         address, state, error or name, version, layer_ids
//   problems[]        why not every request can be served
//   notes[]           what to know besides
//   ok                no problems

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engram_client/ctl/status_report.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json MovesAsJson(const StatusReport& report, const ServerProbe& server) {
  const v1::ExchangeResponse::Moves& moves = server.exchange->moves();
  const RateMeter* rate = LoadRateOf(report, server);
  const std::optional<double> speed =
      rate == nullptr ? std::nullopt : rate->per_second();
  return {{"owned", moves.owned()},
          {"to_load", moves.to_load()},
          {"loading", moves.loading()},
          {"to_free", moves.to_free()},
          {"lingering", moves.lingering()},
          {"to_load_bytes", moves.to_load_bytes()},
          {"memory_bytes", moves.memory_bytes()},
          {"loaded_bytes", moves.loaded_bytes()},
          {"failed_loads", moves.failed_loads()},
          {"waiting_for", moves.waiting_for()},
          {"load_bytes_per_second",
           speed.has_value() ? Json(*speed) : Json(nullptr)}};
}

Json ServerAsJson(const StatusReport& report, const ServerProbe& server) {
  Json json = {{"address", server.address},
               {"state", StateOf(server)},
               {"found", server.found},
               {"name", OrNull(server.name)},
               {"heard_by", HeardBy(report.servers, server.name)},
               {"not_heard_by", NotHeardBy(report.servers, server.name)}};
  if (!server.error.empty()) {
    json["error"] = server.error;
    return json;
  }
  json["version"] = server.version;
  json["partitions_held"] = server.partitions_held();
  if (!server.exchange.has_value()) return json;
  const v1::ExchangeResponse& exchange = *server.exchange;
  json["view_digest"] = OrNull(exchange.view_digest());
  json["replicas"] = exchange.replicas();
  json["leaving"] = exchange.leaving();
  json["moves"] = MovesAsJson(report, server);
  return json;
}

Json ViewAsJson(const SeenView& view) {
  Json members = Json::array();
  for (const Member& member : view.members) {
    members.push_back({{"name", member.name},
                       {"address", member.address},
                       {"capacity", member.capacity}});
  }
  return {{"digest", view.digest},
          {"replicas", view.replicas},
          {"members", members},
          {"seen_by", view.servers}};
}

Json WorkerAsJson(const WorkerProbe& worker) {
  Json json = {{"address", worker.address}, {"state", StateOf(worker)}};
  if (!worker.error.empty()) {
    json["error"] = worker.error;
    return json;
  }
  json["name"] = worker.name;
  json["version"] = worker.version;
  json["layer_ids"] = worker.layer_ids;
  return json;
}

Json CoverageAsJson(const TableCoverage& table) {
  Json layers = Json::array();
  for (const LayerCoverage& layer : table.layers) {
    layers.push_back({{"layer_id", layer.layer_id},
                      {"partitions", layer.partitions},
                      {"partitions_held_by", layer.partitions_held_by}});
  }
  return {{"version", table.version}, {"layers", layers}};
}

}  // namespace

std::string ReportAsJson(const StatusReport& report, JsonStyle style) {
  Json json = {{"format", "engram-status/1"},
               {"time_unix_ms", absl::ToUnixMillis(report.time)},
               {"servers", Json::array()},
               {"views", Json::array()},
               {"tables", Json::array()},
               {"workers", Json::array()},
               {"problems", report.problems},
               {"notes", report.notes},
               {"ok", report.problems.empty()}};
  for (const ServerProbe& server : report.servers) {
    json["servers"].push_back(ServerAsJson(report, server));
  }
  for (const SeenView& view : report.views) {
    json["views"].push_back(ViewAsJson(view));
  }
  for (const TableCoverage& table : report.tables) {
    json["tables"].push_back(CoverageAsJson(table));
  }
  for (const WorkerProbe& worker : report.workers) {
    json["workers"].push_back(WorkerAsJson(worker));
  }
  // Names come from other processes: bytes that are not UTF-8 are replaced.
  return json.dump(style == JsonStyle::kOneLine ? -1 : 1, ' ', false,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace engram::ctl
